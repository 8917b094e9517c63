import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Consumers that do as they are told, a line each, and say how many partitions they hold whenever that changes.
 *
 * Lines: "start NAME TOPIC KEY=VALUE...", "hang NAME MILLISECONDS", "close NAME", "produce PARTITIONS PER_SECOND
 * TOPIC...". The end of the input ends the program, without a word to the broker.
 */
public final class Clients {
    private static final int BATCH_MS = 250;
    private static final Map<String, Member> MEMBERS = new HashMap<>();

    public static void main(String[] args) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "start" -> {
                    Member member = new Member(words[1], words[2], settings(args[0], words, 3));
                    MEMBERS.put(words[1], member);
                    new Thread(member, words[1]).start();
                }
                case "hang" -> MEMBERS.get(words[1]).hangMs.set(Long.parseLong(words[2]));
                case "close" -> MEMBERS.get(words[1]).isClosing = true;
                case "produce" -> new Thread(() -> produce(settings(args[0], words, words.length), words)).start();
                default -> throw new IllegalArgumentException(line);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static Properties settings(String servers, String[] words, int from) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        for (int index = from; index < words.length; index++) {
            String[] pair = words[index].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        return settings;
    }

    private static void produce(Properties settings, String[] words) {
        int partitions = Integer.parseInt(words[1]);
        int perSecond = Integer.parseInt(words[2]);
        ByteArraySerializer bytes = new ByteArraySerializer();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, bytes, bytes)) {
            for (long at = System.currentTimeMillis(); ; at += 1000 / perSecond) {
                for (int index = 3; index < words.length; index++) {
                    for (int partition = 0; partition < partitions; partition++) {
                        producer.send(new ProducerRecord<>(words[index], partition, null, new byte[1]));
                    }
                }
                pause(at + 1000 / perSecond - System.currentTimeMillis());
            }
        }
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(Math.max(0, ms));
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    /** One consumer in its thread; a batch takes a quarter of a second. */
    private static final class Member implements Runnable {
        private final String name;
        private final String topic;
        private final Properties settings;
        private final AtomicLong hangMs = new AtomicLong();
        private volatile boolean isClosing;
        private int held;

        Member(String name, String topic, Properties settings) {
            this.name = name;
            this.topic = topic;
            this.settings = settings;
        }

        @Override
        public void run() {
            ByteArrayDeserializer bytes = new ByteArrayDeserializer();
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
                consumer.subscribe(List.of(topic));
                while (!isClosing) {
                    boolean isEmpty = poll(consumer);
                    tell(consumer.assignment().size());
                    pause(hangMs.getAndSet(0) + (isEmpty ? 0 : BATCH_MS));
                }
            } finally {
                tell(0);
            }
        }

        /** A consumer of Kafka 4.2 throws if it loses partitions during a poll (KAFKA-20106): it polls once more. */
        private static boolean poll(KafkaConsumer<byte[], byte[]> consumer) {
            try {
                return consumer.poll(Duration.ofMillis(BATCH_MS)).isEmpty();
            } catch (IllegalStateException error) {
                System.err.println("polls once more after " + error);
                return consumer.poll(Duration.ofMillis(BATCH_MS)).isEmpty();
            }
        }

        private void tell(int now) {
            if (now != held) {
                held = now;
                System.out.println("holds " + name + " " + held);
            }
        }
    }
}

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.ShareConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.consumer.internals.AsyncKafkaConsumer;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceListener;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.Exit;

/**
 * Members of groups of every kind, and Kafka's own tools beside them: a line in, a line of JSON out.
 *
 * Lines: "join KIND NAME GROUP TOPICS INSTANCE" (comma between topics, "-" for no instance), "stop NAME...", "own",
 * "commit", "groups" and "tool CLASS ARGUMENT...". A name is a client id; the argument is the brokers' address.
 */
public final class Members {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration PAUSE = Duration.ofMillis(200);
    private static final long LIMIT_SECONDS = 20;
    private static final long LISTING_SECONDS = 120;

    private final String servers;
    private final Admin admin;
    private final Map<String, Member> members = new LinkedHashMap<>();

    private Members(String servers) {
        this.servers = servers;
        this.admin = Admin.create(Map.of(
            "bootstrap.servers", servers, "request.timeout.ms", 5000, "default.api.timeout.ms", 10000));
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // libraries print, too
        Members program = new Members(args[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(JSON.writeValueAsString(program.answer(line.split(" "))));
            answers.flush();
        }
        Runtime.getRuntime().halt(0); // whoever asked is gone: no need to leave the groups in order
    }

    private Object answer(String[] words) throws Exception {
        return switch (words[0]) {
            case "join" -> join(words[1], words[2], words[3], List.of(words[4].split(",")), words[5]);
            case "stop" -> stop(Arrays.asList(words).subList(1, words.length));
            case "own" -> own();
            case "commit" -> commit();
            case "groups" -> groups();
            case "tool" -> tool(words[1], Arrays.copyOfRange(words, 2, words.length));
            default -> throw new IllegalArgumentException(words[0]);
        };
    }

    private String join(String kind, String name, String group, List<String> topics, String instance) {
        Map<String, Object> settings = new HashMap<>(Map.of(
            "bootstrap.servers", servers, "group.id", group, "client.id", name,
            "key.deserializer", ByteArrayDeserializer.class, "value.deserializer", ByteArrayDeserializer.class,
            "metadata.max.age.ms", 1000)); // a classic member hears only so that a topic has ended
        Member member = kind.equals("share")
            ? new Member(group, null, share(settings, topics))
            : new Member(group, consumer(kind, settings, topics, instance), null);
        members.put(name, member);
        member.start();
        return name;
    }

    private static ShareConsumer<byte[], byte[]> share(Map<String, Object> settings, List<String> topics) {
        ShareConsumer<byte[], byte[]> share = new KafkaShareConsumer<>(settings);
        share.subscribe(topics);
        return share;
    }

    private static Consumer<byte[], byte[]> consumer(
        String kind, Map<String, Object> settings, List<String> topics, String instance) {
        settings.putAll(Map.of("enable.auto.commit", false, "auto.offset.reset", "earliest"));
        if (!instance.equals("-")) {
            settings.put("group.instance.id", instance);
        }
        if (kind.equals("range") || kind.equals("cooperative")) {
            boolean isRange = kind.equals("range");
            settings.put("partition.assignment.strategy",
                List.of(isRange ? RangeAssignor.class : CooperativeStickyAssignor.class));
            settings.putAll(Map.of("group.protocol", "classic", "heartbeat.interval.ms", 500));
        } else {
            settings.put("group.protocol", "consumer");
        }
        if (kind.equals("streams")) {
            return streams(settings, topics);
        }
        Consumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings);
        if (kind.equals("expression")) {
            consumer.subscribe(new SubscriptionPattern(topics.get(0)));
        } else {
            consumer.subscribe(topics);
        }
        return consumer;
    }

    /** What Kafka Streams joins with; its own jar is not needed for that. One subtopology reads all topics. */
    private static Consumer<byte[], byte[]> streams(Map<String, Object> settings, List<String> topics) {
        StreamsRebalanceData data = new StreamsRebalanceData(UUID.randomUUID(), Optional.empty(), Map.of("all",
            new StreamsRebalanceData.Subtopology(Set.copyOf(topics), Set.of(), Map.of(), Map.of(), List.of())), Map.of());
        AsyncKafkaConsumer<byte[], byte[]> consumer = new AsyncKafkaConsumer<>(
            new ConsumerConfig(settings), new ByteArrayDeserializer(), new ByteArrayDeserializer(), Optional.of(data));
        consumer.subscribe(topics, new StreamsRebalanceListener() {
            @Override
            public void onTasksRevoked(Set<StreamsRebalanceData.TaskId> tasks) {
            }

            @Override
            public void onTasksAssigned(StreamsRebalanceData.Assignment assignment) {
                data.setReconciledAssignment(assignment); // the next heartbeat tells the coordinator
            }

            @Override
            public void onAllTasksLost() {
                data.setReconciledAssignment(StreamsRebalanceData.Assignment.EMPTY);
            }
        });
        return consumer;
    }

    private List<String> stop(List<String> names) throws InterruptedException {
        names.forEach(name -> members.get(name).leaves = true);
        for (String name : names) {
            Member member = members.remove(name);
            member.join(LIMIT_SECONDS * 1000);
            if (member.isAlive()) {
                throw new IllegalStateException(name + " does not stop");
            }
        }
        return names;
    }

    private Map<String, Object> own() {
        Map<String, Object> found = new LinkedHashMap<>();
        members.forEach((name, member) -> found.put(name, member.own));
        return found;
    }

    /** Every consumer commits what it has read: name to topic, partition and position. */
    private Map<String, Object> commit() throws Exception {
        Map<String, FutureTask<Object>> tasks = new LinkedHashMap<>();
        members.forEach((name, member) -> {
            if (member.consumer != null) {
                FutureTask<Object> task = new FutureTask<>(member::commit);
                member.asked.add(task);
                tasks.put(name, task);
            }
        });
        Map<String, Object> found = new LinkedHashMap<>();
        for (Map.Entry<String, FutureTask<Object>> task : tasks.entrySet()) {
            found.put(task.getKey(), task.getValue().get(LIMIT_SECONDS, TimeUnit.SECONDS));
        }
        return found;
    }

    /** One broker that is busy, or has just ended, fails the whole listing; the next one asks the brokers that are left. */
    private Map<String, Object> groups() throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(LISTING_SECONDS);
        while (true) {
            try {
                return listing();
            } catch (ExecutionException error) {
                Throwable reason = error.getCause(); // that of no answer to "which brokers are there?" is one level down
                boolean isPassing = reason instanceof RetriableException || reason.getCause() instanceof RetriableException;
                if (!isPassing || System.nanoTime() > end) {
                    throw error;
                }
                System.err.println("groups: asks once more after " + reason);
            }
        }
    }

    private Map<String, Object> listing() throws Exception {
        Map<String, Object> found = new LinkedHashMap<>();
        for (GroupListing each : admin.listGroups().all().get(LIMIT_SECONDS, TimeUnit.SECONDS)) {
            found.put(each.groupId(), List.of(
                each.type().orElseThrow().toString(), each.groupState().orElseThrow().toString(), each.protocol()));
        }
        return found;
    }

    /** What a command line tool prints, without the second that a JVM of its own takes to start. */
    private static String tool(String name, String[] arguments) throws ReflectiveOperationException {
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        Exit.setExitProcedure((code, message) -> { // some tools end the program even when all went well
            throw new IllegalStateException("exit " + code);
        });
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException error) {
            if (!"exit 0".equals(error.getCause().getMessage())) {
                throw new IllegalStateException(printed.toString(StandardCharsets.UTF_8), error);
            }
        } finally {
            System.setOut(System.err);
        }
        return printed.toString(StandardCharsets.UTF_8);
    }

    /** One member in a thread of its own, as a client is for one thread at a time. */
    private static final class Member extends Thread {
        private final String group;
        private final Consumer<byte[], byte[]> consumer; // null in a share group
        private final ShareConsumer<byte[], byte[]> share; // null in any other
        private final BlockingQueue<FutureTask<Object>> asked = new LinkedBlockingQueue<>();
        private volatile boolean leaves;
        private volatile Map<String, Object> own;

        private Member(String group, Consumer<byte[], byte[]> consumer, ShareConsumer<byte[], byte[]> share) {
            this.group = group;
            this.consumer = consumer;
            this.share = share;
            this.own = Map.of("group", group);
            setDaemon(true);
        }

        @Override
        public void run() {
            try (AutoCloseable client = consumer == null ? share : consumer) {
                while (!leaves) {
                    if (consumer == null) {
                        share.poll(PAUSE);
                    } else {
                        poll();
                        own = Map.of("group", group, "member_id", consumer.groupMetadata().memberId(),
                            "generation", consumer.groupMetadata().generationId(),
                            "owned", consumer.assignment().stream().map(each -> List.of(each.topic(), each.partition())).toList());
                    }
                    for (FutureTask<Object> task = asked.poll(); task != null; task = asked.poll()) {
                        task.run();
                    }
                }
            } catch (Exception error) {
                own = Map.of("group", group, "error", error.toString());
            }
        }

        /**
         * A consumer of Kafka 4.2 takes partitions away in its background thread, also while a poll looks at them,
         * which then throws (KAFKA-20106). The poll after it knows what is left; two in a row are another error.
         */
        private void poll() {
            try {
                consumer.poll(PAUSE);
            } catch (IllegalStateException error) {
                System.err.println(getName() + ": polls once more after " + error);
                consumer.poll(PAUSE);
            }
        }

        private Object commit() {
            consumer.commitSync(Duration.ofSeconds(LIMIT_SECONDS));
            List<Object> positions = new ArrayList<>();
            for (TopicPartition each : consumer.assignment()) {
                try {
                    positions.add(List.of(each.topic(), each.partition(), consumer.position(each, PAUSE)));
                } catch (TimeoutException error) {
                    // a task of a streams group reads its partition of every topic, also where there is none
                }
            }
            return positions;
        }
    }
}

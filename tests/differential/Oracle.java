import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerProtocolSubscription;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.utils.ImplicitLinkedHashCollection;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.Deserializer;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordType;

/**
 * What Kafka's own classes read, a line in and a line of JSON out.
 *
 * Lines: "record KEY VALUE", "subscription BLOB", "assignment BLOB" and "types", all bytes in hex and null as "null".
 * Fields have the names and shapes that `laggard decode` prints.
 */
public final class Oracle {
    private static final GroupCoordinatorRecordSerde SERDE = new GroupCoordinatorRecordSerde();
    private static final HexFormat HEX = HexFormat.of();
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<Class<?>, Map<String, Field>> FIELDS = new HashMap<>();

    public static void main(String[] args) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        BufferedWriter answers = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            answers.write(JSON.writeValueAsString(switch (words[0]) {
                case "record" -> record(bytes(words[1]), bytes(words[2]));
                case "subscription" -> subscription(bytes(words[1]));
                case "assignment" -> assignment(bytes(words[1]));
                case "types" -> types();
                default -> throw new IllegalArgumentException(line);
            }));
            answers.write('\n');
            if (!lines.ready()) {
                answers.flush(); // whoever asked may wait for the answer before it asks again
            }
        }
        answers.flush();
    }

    private static Map<String, Object> record(byte[] key, byte[] value) {
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            CoordinatorRecord record = SERDE.deserialize(buffer(key), buffer(value));
            answer.put("outcome", record.value() == null ? "tombstone" : "record");
            putKey(answer, record);
            if (record.value() != null) {
                answer.put("value_version", record.value().version());
                answer.put("value", shown(record.value().message()));
            }
        } catch (Deserializer.UnknownRecordTypeException | Deserializer.UnknownRecordVersionException error) {
            refuse(answer, "unsupported", error);
            putKeyIfGood(answer, key);
        } catch (RuntimeException error) {
            refuse(answer, "malformed", error);
            putKeyIfGood(answer, key);
        }
        return answer;
    }

    private static void refuse(Map<String, Object> answer, String outcome, RuntimeException error) {
        answer.put("outcome", outcome);
        answer.put("why", error.toString());
    }

    private static void putKey(Map<String, Object> answer, CoordinatorRecord record) {
        answer.put("record_type", record.key().apiKey());
        answer.put("key", shown(record.key()));
    }

    private static void putKeyIfGood(Map<String, Object> answer, byte[] key) {
        try {
            putKey(answer, SERDE.deserialize(buffer(key), null));
        } catch (RuntimeException error) {
            // then the key is what is wrong, and there is none to show
        }
    }

    private static Map<String, Object> subscription(byte[] blob) {
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            short version = ConsumerProtocol.deserializeVersion(buffer(blob));
            if (version < 0) {
                ConsumerProtocol.deserializeConsumerProtocolSubscription(buffer(blob)); // refuses it
            }
            putBlob(answer, version, wanted(blob));
        } catch (RuntimeException error) {
            refuse(answer, "malformed", error);
        }
        return answer;
    }

    /** The fields as a client reads them, or else the version 0 of them as the coordinator does in ClassicGroup. */
    private static Map<String, Object> wanted(byte[] blob) {
        Map<String, Object> fields;
        try {
            fields = shown(ConsumerProtocol.deserializeConsumerProtocolSubscription(buffer(blob)));
            fields.put("partial", false);
        } catch (RuntimeException error) {
            ByteBuffer rest = buffer(blob);
            ConsumerProtocol.deserializeVersion(rest);
            ConsumerProtocolSubscription prefix = ConsumerProtocol.deserializeConsumerProtocolSubscription(rest, (short) 0);
            fields = shown(prefix);
            fields.put("partial", true);
        }
        return fields;
    }

    private static Map<String, Object> assignment(byte[] blob) {
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            short version = ConsumerProtocol.deserializeVersion(buffer(blob));
            putBlob(answer, version, shown(ConsumerProtocol.deserializeConsumerProtocolAssignment(buffer(blob))));
        } catch (RuntimeException error) {
            refuse(answer, "malformed", error);
        }
        return answer;
    }

    private static void putBlob(Map<String, Object> answer, short version, Map<String, Object> fields) {
        fields.put("version", version);
        answer.put("outcome", "record");
        answer.put("value", fields);
    }

    private static Map<String, Object> types() {
        Map<String, Object> answer = new LinkedHashMap<>();
        for (CoordinatorRecordType type : CoordinatorRecordType.values()) {
            answer.put(String.valueOf(type.id()), List.of(type.name(), type.newRecordValue().highestSupportedVersion()));
        }
        return answer;
    }

    private static byte[] bytes(String hex) {
        return hex.equals("null") ? null : HEX.parseHex(hex);
    }

    private static ByteBuffer buffer(byte[] bytes) {
        return bytes == null ? null : ByteBuffer.wrap(bytes);
    }

    private static Map<String, Object> shown(Message message) {
        Map<String, Object> fields = new LinkedHashMap<>();
        FIELDS.computeIfAbsent(message.getClass(), Oracle::fieldsOf).forEach((name, field) -> {
            try {
                fields.put(name, shownValue(field.get(message)));
            } catch (IllegalAccessException error) {
                throw new IllegalStateException(error);
            }
        });
        return fields;
    }

    private static Object shownValue(Object value) {
        if (value instanceof Message message) {
            return shown(message);
        } else if (value instanceof Iterable<?> items) {
            List<Object> all = new ArrayList<>();
            items.forEach(item -> all.add(shownValue(item)));
            return all;
        } else if (value instanceof byte[] bytes) {
            return HEX.formatHex(bytes);
        } else if (value instanceof ByteBuffer buffer) {
            byte[] bytes = new byte[buffer.remaining()];
            buffer.duplicate().get(bytes);
            return HEX.formatHex(bytes);
        } else if (value instanceof Uuid uuid) {
            return uuid.toString();
        } else if (value == null || value instanceof Number || value instanceof String) {
            return value;
        }
        throw new IllegalArgumentException("no shape for " + value.getClass());
    }

    /** The fields of a generated class; it has no list of them, and its JSON leaves out what its version lacks. */
    private static Map<String, Field> fieldsOf(Class<?> generated) {
        boolean isLinked = ImplicitLinkedHashCollection.Element.class.isAssignableFrom(generated);
        Map<String, Field> fields = new LinkedHashMap<>();
        for (Field field : generated.getDeclaredFields()) {
            String name = field.getName();
            boolean isLink = isLinked && (name.equals("next") || name.equals("prev"));
            if (!Modifier.isStatic(field.getModifiers()) && !name.startsWith("_") && !isLink) {
                field.setAccessible(true);
                fields.put(name.replaceAll("([A-Z])", "_$1").toLowerCase(), field);
            }
        }
        return fields;
    }
}

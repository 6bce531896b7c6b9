import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.metadata.AccessControlEntryRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.RemoveAccessControlEntryRecord;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.CompactArrayOf;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Writes messages that Kafka itself has no classes for, with Kafka's own protocol types, from the tables of KIP-1279.
 *
 * <p>Usage: java WriteGolden FILE. Each line of FILE is a name, a blank and the bytes in hexadecimal. What the values
 * are is repeated by the tests that read the file.
 */
public final class WriteGolden {
    private static final Uuid ID = new Uuid(0x0102030405060708L, 0x090a0b0c0d0e0f10L);
    private static final long END = 0x1122334455667788L;

    private final PrintStream out;

    private WriteGolden(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] args) throws Exception {
        try (PrintStream out = new PrintStream(Files.newOutputStream(Path.of(args[0])), false, StandardCharsets.US_ASCII)) {
            WriteGolden w = new WriteGolden(out);
            w.adminRequests();
            w.adminResponses();
            w.agentMessages();
            w.fetch();
            w.stateRecords();
            w.metadataRecords();
        }
        System.out.println(AppInfoParser.getVersion());
    }

    // Schemas. A structure always ends in a section of tagged fields.

    private static Schema flexible(Object... namesAndTypes) {
        return tagged(new Object[0], namesAndTypes);
    }

    private static Schema tagged(Object[] tags, Object... namesAndTypes) {
        List<Field> fields = new ArrayList<>();
        for (int i = 0; i < namesAndTypes.length; i += 2) {
            fields.add(new Field((String) namesAndTypes[i], (Type) namesAndTypes[i + 1], ""));
        }
        fields.add(Field.TaggedFieldsSection.of(tags));
        return new Schema(fields.toArray(new Field[0]));
    }

    private static Object[] tags(Object... tagsAndFields) {
        return tagsAndFields;
    }

    private static Type array(Type of) {
        return new CompactArrayOf(of);
    }

    private static Struct struct(Schema schema, Object... namesAndValues) {
        Struct s = new Struct(schema);
        s.set("_tagged_fields", new TreeMap<Integer, Object>());
        for (int i = 0; i < namesAndValues.length; i += 2) {
            s.set((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return s;
    }

    private static Map<Integer, Object> values(Object... tagsAndValues) {
        Map<Integer, Object> m = new TreeMap<>();
        for (int i = 0; i < tagsAndValues.length; i += 2) {
            m.put((Integer) tagsAndValues[i], tagsAndValues[i + 1]);
        }
        return m;
    }

    private static Object[] list(Object... elements) {
        return elements;
    }

    private static byte[] bytes(Struct s) {
        ByteBuffer buf = ByteBuffer.allocate(s.sizeOf());
        s.writeTo(buf);
        return buf.array();
    }

    private void line(String name, byte[] b) {
        out.println(name + " " + HexFormat.of().formatHex(b));
    }

    private void line(String name, Struct s) {
        line(name, bytes(s));
    }

    // Requests of Cluster Mirroring.

    private void adminRequests() {
        Schema config = flexible("name", Type.COMPACT_STRING, "value", Type.COMPACT_NULLABLE_STRING);
        line("CreateMirrorRequest", struct(
            flexible("mirror", Type.COMPACT_STRING, "config", array(config)),
            "mirror", "my-mirror", "config", list(
                struct(config, "name", "bootstrap.servers", "value", "source:9092"),
                struct(config, "name", "sasl.jaas.config", "value", null))));
        Schema start = flexible("id", Type.UUID, "name", Type.COMPACT_STRING, "partitions", Type.INT32);
        line("StartMirrorTopicsRequest", struct(
            flexible("mirror", Type.COMPACT_STRING, "topics", array(start),
                "include", array(Type.COMPACT_STRING), "exclude", array(Type.COMPACT_STRING)),
            "mirror", "my-mirror", "topics", list(
                struct(start, "id", ID, "name", "orders-us", "partitions", 3),
                struct(start, "id", Uuid.ZERO_UUID, "name", "orders-eu", "partitions", 70000)),
            "include", list("orders-.*", "payments"), "exclude", list("__.*")));
        Schema topic = flexible("id", Type.UUID, "name", Type.COMPACT_STRING);
        Object[] topics = list(struct(topic, "id", ID, "name", "orders-us"),
            struct(topic, "id", Uuid.ZERO_UUID, "name", "orders-eu"));
        line("StopMirrorTopicsRequest", struct(
            flexible("mirror", Type.COMPACT_STRING, "topics", array(topic), "patterns", array(Type.COMPACT_STRING)),
            "mirror", "my-mirror", "topics", topics, "patterns", list("orders-.*")));
        Schema names = flexible("mirror", Type.COMPACT_STRING, "topics", array(topic));
        line("PauseMirrorTopicsRequest", struct(names, "mirror", "my-mirror", "topics", topics));
        line("ResumeMirrorTopicsRequest", struct(names, "mirror", "my-mirror", "topics", topics));
        line("DeleteMirrorRequest", struct(flexible("mirror", Type.COMPACT_STRING), "mirror", "my-mirror"));
        line("ListMirrorsRequest", struct(flexible()));
        line("DescribeMirrorsRequest", struct(
            flexible("mirrors", array(Type.COMPACT_STRING), "ops", Type.BOOLEAN),
            "mirrors", list("my-mirror", "b"), "ops", true));
        line("DescribeMirrorsRequest/all", struct(
            flexible("mirrors", array(Type.COMPACT_STRING), "ops", Type.BOOLEAN), "mirrors", list(), "ops", false));
    }

    private static Schema result(Object... more) {
        Object[] head = list("throttle", Type.INT32, "code", Type.INT16, "message", Type.COMPACT_NULLABLE_STRING);
        Object[] all = new Object[head.length + more.length];
        System.arraycopy(head, 0, all, 0, head.length);
        System.arraycopy(more, 0, all, head.length, more.length);
        return flexible(all);
    }

    private void adminResponses() {
        line("CreateMirrorResponse", struct(result(), "throttle", 7, "code", (short) 1135, "message", "no such name"));
        line("DeleteMirrorResponse", struct(result(), "throttle", 0, "code", (short) 0, "message", null));
        Schema topic = tagged(tags(0, new Field("message", Type.COMPACT_NULLABLE_STRING, "")),
            "name", Type.COMPACT_STRING, "code", Type.INT16);
        for (String api : List.of("Start", "Stop", "Pause", "Resume")) {
            line(api + "MirrorTopicsResponse", struct(
                result("mirror", Type.COMPACT_STRING, "topics", array(topic)),
                "throttle", 7, "code", (short) 1137, "message", "taken", "mirror", "my-mirror", "topics", list(
                    struct(topic, "name", "orders-us", "code", (short) 0),
                    struct(topic, "name", "orders-eu", "code", (short) 1137, "_tagged_fields", values(0, "by other")))));
        }
        Schema listed = flexible("mirror", Type.COMPACT_STRING, "bootstrap", Type.COMPACT_STRING,
            "cluster", Type.COMPACT_STRING, "count", Type.INT32);
        line("ListMirrorsResponse", struct(result("mirrors", array(listed)),
            "throttle", 7, "code", (short) 0, "message", null, "mirrors", list(
                struct(listed, "mirror", "a", "bootstrap", "h1:9092,h2:9092", "cluster", "kVsgz1UjR1eLWGrDHVzCPg",
                    "count", 200),
                struct(listed, "mirror", "b", "bootstrap", "h:1", "cluster", "", "count", 0))));
        Schema partition = tagged(
            tags(0, new Field("end", Type.INT64, ""), 1, new Field("cause", Type.COMPACT_NULLABLE_STRING, ""),
                2, new Field("attempts", Type.INT32, "")),
            "partition", Type.INT32, "source", Type.INT64, "destination", Type.INT64, "lag", Type.INT64,
            "state", Type.COMPACT_STRING, "epoch", Type.INT32);
        Schema described = flexible("name", Type.COMPACT_STRING, "partitions", array(partition));
        Schema mirror = flexible("code", Type.INT16, "mirror", Type.COMPACT_STRING, "ops", Type.INT32,
            "topics", array(described));
        line("DescribeMirrorsResponse", struct(result("mirrors", array(mirror)),
            "throttle", 7, "code", (short) 0, "message", null, "mirrors", list(
                struct(mirror, "code", (short) 0, "mirror", "my-mirror", "ops", Integer.MIN_VALUE, "topics", list(
                    struct(described, "name", "my-topic", "partitions", list(
                        struct(partition, "partition", 0, "source", END, "destination", END - 5, "lag", 5L,
                            "state", "MIRRORING", "epoch", -1),
                        struct(partition, "partition", 1, "source", -1L, "destination", -1L, "lag", -1L,
                            "state", "FAILED", "epoch", 4,
                            "_tagged_fields", values(0, END, 1, "topic was created again", 2, 20)))))),
                struct(mirror, "code", (short) 1136, "mirror", "b", "ops", 8, "topics", list()))));
    }

    // What agents ask each other.

    private void agentMessages() {
        Schema index = flexible("partition", Type.INT32);
        Schema asked = flexible("name", Type.COMPACT_STRING, "partitions", array(index));
        line("ReadMirrorStatesRequest", struct(flexible("mirror", Type.COMPACT_STRING, "topics", array(asked)),
            "mirror", "my-mirror", "topics", list(struct(asked, "name", "my-topic", "partitions",
                list(struct(index, "partition", 0), struct(index, "partition", 9))))));
        Object[] end = tags(0, new Field("end", Type.INT64, ""));
        Schema read = tagged(end, "partition", Type.INT32, "epoch", Type.INT32, "state", Type.INT8, "code", Type.INT16);
        Schema topic = flexible("name", Type.COMPACT_STRING, "partitions", array(read));
        line("ReadMirrorStatesResponse", struct(result("topics", array(topic)),
            "throttle", 7, "code", (short) 0, "message", null, "topics", list(
                struct(topic, "name", "my-topic", "partitions", list(
                    struct(read, "partition", 0, "epoch", 4, "state", (byte) 5, "code", (short) 0,
                        "_tagged_fields", values(0, END)),
                    struct(read, "partition", 9, "epoch", -1, "state", (byte) 16, "code", (short) 3))))));
        Schema written = tagged(end, "partition", Type.INT32, "epoch", Type.INT32, "state", Type.INT8);
        Schema writes = flexible("name", Type.COMPACT_STRING, "partitions", array(written));
        line("WriteMirrorStatesRequest", struct(
            flexible("mirror", Type.COMPACT_STRING, "topics", array(writes), "stopped", array(Type.COMPACT_STRING)),
            "mirror", "my-mirror", "topics", list(
                struct(writes, "name", "my-topic", "partitions", list(
                    struct(written, "partition", 0, "epoch", 4, "state", (byte) 5, "_tagged_fields", values(0, END)),
                    struct(written, "partition", 9, "epoch", -1, "state", (byte) 1)))),
            "stopped", list("my-topic")));
        Schema done = flexible("partition", Type.INT32, "code", Type.INT16);
        Schema results = flexible("name", Type.COMPACT_STRING, "partitions", array(done));
        Object[] answers = list(struct(results, "name", "my-topic", "partitions", list(
            struct(done, "partition", 0, "code", (short) 0), struct(done, "partition", 9, "code", (short) 74))));
        line("WriteMirrorStatesResponse", struct(result("topics", array(results)),
            "throttle", 7, "code", (short) 0, "message", null, "topics", answers));
        Schema bump = flexible("partition", Type.INT32, "epoch", Type.INT32);
        Schema bumps = flexible("id", Type.UUID, "partitions", array(bump));
        line("BumpLeaderEpochsRequest", struct(flexible("topics", array(bumps)), "topics", list(
            struct(bumps, "id", ID, "partitions", list(
                struct(bump, "partition", 0, "epoch", 50), struct(bump, "partition", 9, "epoch", -1))))));
        line("BumpLeaderEpochsResponse", struct(
            flexible("throttle", Type.INT32, "code", Type.INT16, "topics", array(results)),
            "throttle", 7, "code", (short) 0, "topics", answers));
    }

    // Fetch v19 is v18 with one more tagged field on each side.

    private static byte[] bytes(Message m, short version) {
        return MessageUtil.toByteBufferAccessor(m, version).buffer().array();
    }

    private static RawTaggedField epoch(int tag, int epoch) {
        return new RawTaggedField(tag, ByteBuffer.allocate(4).putInt(epoch).array());
    }

    private void fetch() {
        FetchRequestData.FetchPartition p = new FetchRequestData.FetchPartition()
            .setPartition(3).setCurrentLeaderEpoch(-1).setFetchOffset(END).setLastFetchedEpoch(-1)
            .setLogStartOffset(-1).setPartitionMaxBytes(1 << 20).setHighWatermark(END + 9);
        p.unknownTaggedFields().add(epoch(2, 44));
        line("FetchRequest/19", bytes(new FetchRequestData()
            .setMaxWaitMs(500).setMinBytes(1).setMaxBytes(10 << 20).setSessionId(77).setSessionEpoch(2)
            .setTopics(List.of(new FetchRequestData.FetchTopic().setTopicId(ID).setPartitions(List.of(p)))), (short) 18));
        FetchResponseData.PartitionData d = new FetchResponseData.PartitionData()
            .setPartitionIndex(3).setHighWatermark(END + 10).setLastStableOffset(END + 10).setLogStartOffset(5)
            .setAbortedTransactions(List.of()).setDivergingEpoch(
                new FetchResponseData.EpochEndOffset().setEpoch(4).setEndOffset(END))
            .setRecords(MemoryRecords.readableRecords(ByteBuffer.wrap("records".getBytes(StandardCharsets.US_ASCII))));
        d.unknownTaggedFields().add(epoch(3, 44));
        line("FetchResponse/19", bytes(new FetchResponseData().setThrottleTimeMs(7).setSessionId(77).setResponses(List.of(
            new FetchResponseData.FetchableTopicResponse().setTopicId(ID).setPartitions(List.of(d)))), (short) 18));
    }

    // Records of __mirror_state: int16 type or version, then the fields.

    private static byte[] behind(short head, byte[] body) {
        return ByteBuffer.allocate(2 + body.length).putShort(head).put(body).array();
    }

    private void stateRecords() {
        Schema key = new Schema(new Field("mirror", Type.STRING, ""));
        byte[] key1 = behind((short) 1, bytes(new Struct(key).set("mirror", "my-mirror")));
        byte[] key2 = behind((short) 2, bytes(new Struct(key).set("mirror", "my-mirror")));
        line("state/key1", key1);
        line("state/key2", key2);
        Schema state = flexible("topic", Type.COMPACT_STRING, "partition", Type.INT32, "state", Type.INT8);
        byte[] value2 = behind((short) 0,
            bytes(struct(state, "topic", "my-topic", "partition", 3, "state", (byte) 1)));
        line("state/value2", value2);
        Schema partition = tagged(tags(0, new Field("end", Type.INT64, "")), "partition", Type.INT32, "epoch", Type.INT32);
        Schema topic = flexible("name", Type.COMPACT_STRING, "partitions", array(partition));
        line("state/value1", behind((short) 0, bytes(struct(flexible("topics", array(topic)), "topics", list(
            struct(topic, "name", "my-topic", "partitions", list(
                struct(partition, "partition", 0, "epoch", 4, "_tagged_fields", values(0, END)),
                struct(partition, "partition", 9, "epoch", -1))),
            struct(topic, "name", "other", "partitions", list(struct(partition, "partition", 1, "epoch", 2))))))));
        MemoryRecords batch = MemoryRecords.withRecords(5L, Compression.NONE, new SimpleRecord(1700000000000L, key2, value2));
        byte[] b = new byte[batch.sizeInBytes()];
        batch.buffer().duplicate().get(b);
        line("state/batch", b);
    }

    // Records of __cluster_metadata, framed as the controller writes them.

    private static byte[] framed(org.apache.kafka.common.protocol.ApiMessage m, int version) {
        ApiMessageAndVersion mv = new ApiMessageAndVersion(m, (short) version);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buf = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(mv, cache));
        MetadataRecordSerde.INSTANCE.write(mv, cache, new ByteBufferAccessor(buf));
        return buf.array();
    }

    private void metadataRecords() {
        line("metadata/config", framed(new ConfigRecord().setResourceType((byte) 64).setResourceName("my-mirror")
            .setName("bootstrap.servers").setValue("source:9092"), 0));
        line("metadata/config-deleted", framed(new ConfigRecord().setResourceType((byte) 4).setResourceName("")
            .setName("mirror.replication.throttled.rate").setValue(null), 0));
        line("metadata/acl", framed(new AccessControlEntryRecord().setId(ID).setResourceType((byte) 8)
            .setResourceName("my-mirror").setPatternType((byte) 3).setPrincipal("User:alice").setHost("*")
            .setOperation((byte) 8).setPermissionType((byte) 3), 0));
        line("metadata/acl-removed", framed(new RemoveAccessControlEntryRecord().setId(ID), 0));
        line("metadata/partition-change-2", framed(partitionChange(), 2));
        line("metadata/partition-change-2-all", framed(partitionChange().setIsr(List.of(1, 2)).setLeader(2)
            .setReplicas(List.of(1, 2, 3)).setRemovingReplicas(List.of()).setAddingReplicas(List.of(3))
            .setLeaderRecoveryState((byte) 1).setDirectories(List.of(ID)).setEligibleLeaderReplicas(List.of(4))
            .setLastKnownElr(List.of(5)), 2));
        // Version 3 is version 2 with MinLeaderEpoch behind TopicId.
        Schema v3 = tagged(tags(1, new Field("leader", Type.INT32, "")),
            "partition", Type.INT32, "topic", Type.UUID, "minLeaderEpoch", Type.INT32);
        line("metadata/partition-change-3", frame(5, 3, bytes(struct(v3, "partition", 7, "topic", ID, "minLeaderEpoch", 51))));
        line("metadata/partition-change-3-leader", frame(5, 3, bytes(struct(v3, "partition", 7, "topic", ID,
            "minLeaderEpoch", -1, "_tagged_fields", values(1, 2)))));
    }

    private static PartitionChangeRecord partitionChange() {
        return new PartitionChangeRecord().setPartitionId(7).setTopicId(ID);
    }

    /** The frame of the controller's records: version 1 of the frame, API key, version, each an unsigned varint. */
    private static byte[] frame(int apiKey, int version, byte[] body) {
        return ByteBuffer.allocate(3 + body.length).put((byte) 1).put((byte) apiKey).put((byte) version).put(body).array();
    }
}

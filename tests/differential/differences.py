"""Where laggard and Kafka 4.2 read the same bytes differently, on purpose: the whole list."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """One kind of bytes that the two read differently."""

    name: str
    # what Kafka does, and the class that does it; `generated` is coordinator.group.generated
    kafka: str
    reason: str  # why laggard does something else


DIFFERENCES = (
    # no difference in what is read, but in how it is said
    Difference(
        "no_topic_id",
        "OffsetCommitValue: topicId is the zero uuid where a commit carries none",
        "nobody should take 22 times A for the id of a topic: null",
    ),
    Difference(
        "legacy_value_without_defaults",
        "LegacyOffsetCommitValue has three fields, since its version 0 has no more",
        "one shape for all commits; what version 0 lacks has its default, as with key type 1",
    ),
    Difference(
        "no_classic_member",
        "ConsumerGroupMemberMetadataValue: classicMemberMetadata is an empty struct where its "
        "tag is absent",
        "brokers write an explicit null for the same members; absent and null mean one thing",
    ),
    Difference(
        "no_assignment_epochs",
        "StreamsGroupCurrentMemberAssignmentValue.TaskIds: assignmentEpochs is an empty list "
        "where its tag is absent",
        "brokers before 4.2 wrote none: null, for an empty list would say that there are no "
        "partitions",
    ),
    Difference(
        "encoded_surrogate_in_metadata",
        "OffsetCommitValue: java.lang.String puts one U+FFFD for the bytes of a surrogate",
        "Python's errors='replace' puts one per byte; the text is for reading only",
    ),
    # other releases than 4.2
    Difference(
        "legacy_key_with_newer_value",
        "LegacyOffsetCommitValue has version 0 only since 4.1: unknown version",
        "older brokers paired either key with any version, and such records stay in the topic",
    ),
    Difference(
        "record_type_24",
        "CoordinatorRecordType.fromId has no 24 yet: unknown type",
        "Kafka's trunk has it; it costs a table of two fields",
    ),
    Difference(
        "tag_of_a_later_release",
        "an unknown tag to 4.2, Readable.readUnknownTaggedField: kept as bytes, the content not "
        "looked at",
        "4.3 and 4.4 write assignment_timestamp, assignment_epochs (type 8) and two epochs of "
        "type 17",
    ),
    # damage that Kafka does not see, since it trusts what its brokers wrote
    Difference(
        "trailing_bytes",
        "CoordinatorRecordSerde.readMessage does not look whether the buffer is used up",
        "left-over bytes are the one sign of a layout that is not the one we know",
    ),
    Difference(
        "tag_order",
        "generated read(): any order, and the last of two equal tags wins",
        "KIP-482 wants them ascending; anything else is damage",
    ),
    Difference(
        "tag_size",
        "generated read(): the size of a known tag is read and not used",
        "content that ends elsewhere than it says shifts all that follows",
    ),
    Difference(
        "tag_count_past_int32",
        "generated read(): the count is a signed int, and its loop does not run below 0",
        "no record has 2 billion tags",
    ),
    Difference(
        "length_below_minus_one",
        "generated read(): any negative length of a nullable field is null",
        "only -1 is written for null",
    ),
    Difference(
        "compact_length_past_int32",
        "generated read(): the length is a signed int, so null for a nullable field",
        "a length like any other, and far too long",
    ),
    Difference(
        "varint_past_32_bits",
        "ByteUtils.readUnsignedVarint shifts the high bits of the fifth byte out",
        "no writer sets them; what is left would be another number",
    ),
    Difference(
        "struct_marker",
        "generated read(): a nullable struct is null below 0 (in a tag: below 1), else present",
        "only two markers are written",
    ),
    Difference(
        "invalid_utf8",
        "Readable.readString: java.lang.String puts U+FFFD",
        "two damaged ids could become one; metadata, which is no id, is replaced by laggard too",
    ),
    # blobs of classic members
    Difference(
        "empty_assignment",
        "ConsumerProtocol.deserializeVersion: underflow; but the coordinator stores zero bytes "
        "for 'nothing'",
        "an assignment of nothing is no error",
    ),
)
NAMES = frozenset(difference.name for difference in DIFFERENCES)

package fetchwire

// Bounds on what a peer may make this package read or hold. All sizes in bytes.
const (
	// DefaultMaxFrameBytes bounds a response that is read whole. Metadata of 200,000 partitions is about 20 MB.
	DefaultMaxFrameBytes int32 = 100 << 20
	// handshakeMaxBytes bounds the first response on a connection, so that another protocol's bytes, read as a
	// size, are refused at once.
	handshakeMaxBytes int32 = 1 << 20
	// headBufferBytes is the window a FetchStream decodes heads in. Larger copies more record bytes through it,
	// smaller costs more reads where partitions have little to say.
	headBufferBytes = 8 << 10
	// maxTopicNameBytes bounds a topic name. Kafka: Topic.MAX_NAME_LENGTH.
	maxTopicNameBytes = 249
	// maxStringBytes bounds every string, compact ones too. Kafka: generated readers refuse longer ones.
	maxStringBytes = 0x7fff
	// maxStreamTagBytes bounds a tagged field a FetchStream must hold to decode; unknown ones are skipped.
	maxStreamTagBytes = 1 << 10
	// firstGrowBytes is the most a frame's announced size allocates before any of its bytes arrived.
	firstGrowBytes = 64 << 10
	// keepFrameBytes is the largest response buffer a Conn keeps for the next response.
	keepFrameBytes = 1 << 20
	// maxNodeEndpoints bounds the leaders a fetch response may name at its end.
	maxNodeEndpoints = 10_000
)

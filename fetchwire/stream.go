package fetchwire

// FetchHead is the head of a fetch response.
type FetchHead struct {
	ThrottleMs int32
	ErrorCode  int16 // v7+
	SessionID  int32 // v7+
}

// PartitionHead is what a fetch response says of a partition before its records.
type PartitionHead struct {
	Topic            string // the string of the request, no copy
	TopicID          [16]byte
	Index            int32
	Slot             int // SessionPartition.Slot
	ErrorCode        int16
	HighWatermark    int64
	LastStableOffset int64 // -1 = not said
	LogStartOffset   int64 // -1 = not said
	PreferredReplica int32 // -1 = none
	AbortedTxns      int   // how many were listed (only for read committed); they are skipped
	RecordsSize      int   // bytes of records that follow; 0 also for null
}

// PartitionTail is what a fetch response says of a partition behind its records (v12+).
type PartitionTail struct {
	DivergingEpoch EpochEndOffset   // -1, -1 = none
	CurrentLeader  LeaderIDAndEpoch // -1, -1 = none
	SnapshotID     EpochEndOffset   // -1, -1 = none
}

// FetchStream reads one fetch response, the records straight from the socket into the caller's memory.
//
//	for s.Next() {
//		head := s.Partition()
//		... s.Read(buf) ...       // io.Reader over head.RecordsSize bytes
//		tail, err := s.Finish()   // skips what was not read
//	}
//	err := s.Err()
//
// Owner only. It belongs to its Conn and is reused by the next Conn.Fetch. Errors are sticky and break the Conn.
// No allocation in the steady state.
type FetchStream struct {
	head FetchHead
	part PartitionHead
	tail PartitionTail
	err  error
}

// Head returns the head of the response. A non-zero ErrorCode comes with no partitions.
func (s *FetchStream) Head() FetchHead { return s.head }

// Next moves to the next partition, finishing the current one; false at the end or on an error.
func (s *FetchStream) Next() bool { return false }

// Partition returns the head of the current partition, valid until Next.
func (s *FetchStream) Partition() *PartitionHead { return &s.part }

// Remaining returns how many bytes of the current partition's records were not read yet.
func (s *FetchStream) Remaining() int { return 0 }

// Read reads at most the rest of the current partition's records, straight from the socket once the head buffer is
// drained, and io.EOF at their end. A connection cut inside the response is io.ErrUnexpectedEOF, never io.EOF.
func (s *FetchStream) Read(p []byte) (int, error) { return 0, s.err }

// Finish skips what is left of the current partition's records and decodes what follows them.
func (s *FetchStream) Finish() (PartitionTail, error) { return s.tail, s.err }

// NodeEndpoints returns the addresses of leaders named at the end of the response (v16+), after Next returned false.
func (s *FetchStream) NodeEndpoints() []NodeEndpoint { return nil }

// Err returns the first error, nil at the clean end of a response.
func (s *FetchStream) Err() error { return s.err }

// Close ends the use of the stream. A response that was not read to its end breaks the Conn: Close then closes it
// and returns ErrConnBroken; after the end or an error it returns Err.
func (s *FetchStream) Close() error { return s.err }

// Package fetchwire is the part of Kafka's wire protocol a mirror needs, written by hand: the client's connection,
// requests and responses both ways, and a fetch response read as a stream.
//
// # What
//
// A Conn is one connection to one broker: Dial does TLS, ApiVersions and SASL; Metadata, DescribeCluster, ListOffsets
// and OffsetForLeaderEpoch are calls; Fetch returns a FetchStream, which decodes heads through a small window and
// leaves each partition's records in the socket until the caller has memory for them. A FetchSession makes requests
// say only what changed (KIP-227). For servers there are ReadRequestFrame, DecodeRequestHeader and AppendResponse.
// Each message's file names the definition it was written from and the versions it covers; APIs is the whole table.
//
// # Layout
//
// All numbers are big-endian. A frame is its size and that many bytes:
//
//	request   int32 size | int16 api key | int16 version | int32 correlation id | client id | tags | body
//	response  int32 size | int32 correlation id | tags | body
//
// The client id always has a two-byte length. Tags stand in flexible versions only; the header of an ApiVersions
// response never has them. Flexible versions write a length or count n as the unsigned varint n+1, 0 being null;
// older ones as int16 (strings) or int32 (all else), -1 being null. Tags are a varint count of (varint tag, varint
// size, bytes). In a fetch response of a flexible version a partition's tags, the diverging epoch among them, follow
// its records.
//
// # Invariants
//
// Nothing is allocated for a length before that many bytes are known to be there: a count is refused when its
// smallest elements would not fit the message, a frame read whole grows as its bytes arrive, and a fetch response is
// never held. Unknown tagged fields are skipped; bytes left over behind a message are an error. What one side decodes
// it encodes again to the same value. Bytes from outside never panic. The replica id is never that of a broker.
//
// # Concurrency
//
// Conn, FetchStream and FetchSession belong to one goroutine; only Conn.Close may come from another. A context in
// force ends a read or write by moving its deadline, without a goroutine of its own. Codecs share no state.
//
// # Crash contract
//
// The package writes no files. After an error inside a response the connection is closed and refuses further calls
// with ErrConnBroken: what the next bytes would mean is not known.
package fetchwire

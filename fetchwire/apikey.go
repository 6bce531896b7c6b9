package fetchwire

import "strconv"

// API keys this package speaks. Kafka: ApiKeys.
const (
	KeyFetch                int16 = 1
	KeyListOffsets          int16 = 2
	KeyMetadata             int16 = 3
	KeySaslHandshake        int16 = 17
	KeyApiVersions          int16 = 18
	KeyOffsetForLeaderEpoch int16 = 23
	KeySaslAuthenticate     int16 = 36
	KeyDescribeCluster      int16 = 60
)

// An API is one row of the table of what this package speaks.
type API struct {
	Key      int16
	Name     string // Kafka's name
	Min, Max int16  // versions this package encodes and decodes, both inclusive
	Flexible int16  // first version with compact lengths and tagged fields
}

// neverFlexible marks an API all of whose versions use the old encoding.
const neverFlexible int16 = 0x7fff

// APIs returns the table, in order of key. The highest versions are those Kafka 4.3.1 offers. Any goroutine.
func APIs() [8]API {
	return [8]API{
		{KeyFetch, "Fetch", 4, 18, 12},
		{KeyListOffsets, "ListOffsets", 1, 11, 6},
		{KeyMetadata, "Metadata", 4, 13, 9},
		{KeySaslHandshake, "SaslHandshake", 1, 1, neverFlexible},
		{KeyApiVersions, "ApiVersions", 0, 4, 3},
		{KeyOffsetForLeaderEpoch, "OffsetForLeaderEpoch", 0, 4, 4},
		{KeySaslAuthenticate, "SaslAuthenticate", 0, 2, 2},
		{KeyDescribeCluster, "DescribeCluster", 0, 2, 0},
	}
}

// LookupAPI returns the row of key; ok is false for an API this package does not speak. Any goroutine.
func LookupAPI(key int16) (api API, ok bool) {
	for _, a := range APIs() {
		if a.Key == key {
			return a, true
		}
	}
	return API{}, false
}

// APIName returns Kafka's name of an API, or "API key N". Any goroutine.
func APIName(key int16) string {
	if a, ok := LookupAPI(key); ok {
		return a.Name
	}
	return "API key " + strconv.Itoa(int(key))
}

// flexible reports whether version of key uses compact lengths and tagged fields.
func flexible(key, version int16) bool {
	a, ok := LookupAPI(key)
	return ok && version >= a.Flexible
}

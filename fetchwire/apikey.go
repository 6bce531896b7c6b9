package fetchwire

import "strconv"

// API keys of Kafka that this package speaks. Kafka: ApiKeys.
const (
	KeyProduce                 int16 = 0
	KeyFetch                   int16 = 1
	KeyListOffsets             int16 = 2
	KeyMetadata                int16 = 3
	KeyFindCoordinator         int16 = 10
	KeySaslHandshake           int16 = 17
	KeyApiVersions             int16 = 18
	KeyInitProducerId          int16 = 22
	KeyOffsetForLeaderEpoch    int16 = 23
	KeyDescribeConfigs         int16 = 32
	KeySaslAuthenticate        int16 = 36
	KeyIncrementalAlterConfigs int16 = 44
	KeyDescribeCluster         int16 = 60
)

// API keys of Cluster Mirroring. KIP-1279 gives no numbers yet: these are private, above all that Kafka uses, and sent
// only to a peer that offers them. Final numbers are an edit of this block, and of CodeInvalidMirrorName's for codes.
const (
	KeyCreateMirror       int16 = 1094
	KeyStartMirrorTopics  int16 = 1095
	KeyStopMirrorTopics   int16 = 1096
	KeyListMirrors        int16 = 1098
	KeyDescribeMirrors    int16 = 1099
	KeyReadMirrorStates   int16 = 1100
	KeyWriteMirrorStates  int16 = 1101
	KeyPauseMirrorTopics  int16 = 1102
	KeyResumeMirrorTopics int16 = 1103
	KeyDeleteMirror       int16 = 1104
	KeyBumpLeaderEpochs   int16 = 1105
)

// An API is one row of the table of what this package speaks.
type API struct {
	Key      int16
	Name     string // Kafka's name
	Min, Max int16  // versions this package encodes and decodes, both inclusive
	Flexible int16  // first version with compact lengths and tagged fields
	KafkaMax int16  // newest version of Kafka 4.3.1; what is above is spoken between agents only; -1 = all of it
}

const (
	// neverFlexible marks an API all of whose versions use the old encoding.
	neverFlexible int16 = 0x7fff
	// agentsOnly marks an API that Kafka 4.3.1 does not have.
	agentsOnly int16 = -1
)

// apiTable is in order of key, and never written.
var apiTable = [...]API{
	{KeyProduce, "Produce", 3, 13, 9, 13},
	{KeyFetch, "Fetch", 4, 19, 12, 18},
	{KeyListOffsets, "ListOffsets", 1, 11, 6, 11},
	{KeyMetadata, "Metadata", 4, 13, 9, 13},
	{KeyFindCoordinator, "FindCoordinator", 0, 6, 3, 6},
	{KeySaslHandshake, "SaslHandshake", 1, 1, neverFlexible, 1},
	{KeyApiVersions, "ApiVersions", 0, 4, 3, 4},
	{KeyInitProducerId, "InitProducerId", 0, 5, 2, 5},
	{KeyOffsetForLeaderEpoch, "OffsetForLeaderEpoch", 0, 4, 4, 4},
	{KeyDescribeConfigs, "DescribeConfigs", 1, 4, 4, 4},
	{KeySaslAuthenticate, "SaslAuthenticate", 0, 2, 2, 2},
	{KeyIncrementalAlterConfigs, "IncrementalAlterConfigs", 0, 1, 1, 1},
	{KeyDescribeCluster, "DescribeCluster", 0, 2, 0, 2},
	{KeyCreateMirror, "CreateMirror", 0, 0, 0, agentsOnly},
	{KeyStartMirrorTopics, "StartMirrorTopics", 0, 0, 0, agentsOnly},
	{KeyStopMirrorTopics, "StopMirrorTopics", 0, 0, 0, agentsOnly},
	{KeyListMirrors, "ListMirrors", 0, 0, 0, agentsOnly},
	{KeyDescribeMirrors, "DescribeMirrors", 0, 0, 0, agentsOnly},
	{KeyReadMirrorStates, "ReadMirrorStates", 0, 0, 0, agentsOnly},
	{KeyWriteMirrorStates, "WriteMirrorStates", 0, 0, 0, agentsOnly},
	{KeyPauseMirrorTopics, "PauseMirrorTopics", 0, 0, 0, agentsOnly},
	{KeyResumeMirrorTopics, "ResumeMirrorTopics", 0, 0, 0, agentsOnly},
	{KeyDeleteMirror, "DeleteMirror", 0, 0, 0, agentsOnly},
	{KeyBumpLeaderEpochs, "BumpLeaderEpochs", 0, 0, 0, agentsOnly},
}

// APIs returns a copy of the table, in order of key. Any goroutine.
func APIs() []API { return append([]API(nil), apiTable[:]...) }

// LookupAPI returns the row of key; ok is false for an API this package does not speak. Any goroutine.
func LookupAPI(key int16) (api API, ok bool) {
	if i := apiIndex(key); i >= 0 {
		return apiTable[i], true
	}
	return API{}, false
}

// apiIndex returns the place of key in the table, -1 for none.
func apiIndex(key int16) int {
	for i := range apiTable {
		if apiTable[i].Key == key {
			return i
		}
	}
	return -1
}

// APIName returns Kafka's name of an API, or "API key N". Any goroutine.
func APIName(key int16) string {
	if i := apiIndex(key); i >= 0 {
		return apiTable[i].Name
	}
	return "API key " + strconv.Itoa(int(key))
}

// flexible reports whether version of key uses compact lengths and tagged fields.
func flexible(key, version int16) bool {
	i := apiIndex(key)
	return i >= 0 && version >= apiTable[i].Flexible
}

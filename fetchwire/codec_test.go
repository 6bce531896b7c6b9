package fetchwire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// codec pairs one of our messages with franz-go's.
type codec struct {
	name   string
	ours   func() Message
	theirs func(version int16) kmsgMessage // nil for a version that Kafka does not have
}

// kmsgMessage is what kmsg's requests and responses share.
type kmsgMessage interface {
	Key() int16
	SetVersion(version int16)
	IsFlexible() bool
	AppendTo(dst []byte) []byte
	ReadFrom(src []byte) error
}

func request(ours func() Message) codec {
	key := ours().Key()
	return codec{
		name: APIName(key) + "Request", ours: ours,
		theirs: func(version int16) kmsgMessage {
			if api, _ := LookupAPI(key); version > api.KafkaMax {
				return nil
			}
			m := kmsg.RequestForKey(key)
			m.SetVersion(version)
			reflect.ValueOf(m).MethodByName("Default").Call(nil)
			return m
		},
	}
}

func response(ours func() Message) codec {
	key := ours().Key()
	return codec{
		name: APIName(key) + "Response", ours: ours,
		theirs: func(version int16) kmsgMessage {
			if api, _ := LookupAPI(key); version > api.KafkaMax {
				return nil
			}
			m := kmsg.ResponseForKey(key)
			m.SetVersion(version)
			reflect.ValueOf(m).MethodByName("Default").Call(nil)
			return m
		},
	}
}

// codecs lists every message of this package.
func codecs() []codec {
	return []codec{
		request(func() Message { return &FetchRequest{} }),
		response(func() Message { return &FetchResponse{} }),
		request(func() Message { return &ListOffsetsRequest{} }),
		response(func() Message { return &ListOffsetsResponse{} }),
		request(func() Message { return &MetadataRequest{} }),
		response(func() Message { return &MetadataResponse{} }),
		request(func() Message { return &SaslHandshakeRequest{} }),
		response(func() Message { return &SaslHandshakeResponse{} }),
		request(func() Message { return &ApiVersionsRequest{} }),
		response(func() Message { return &ApiVersionsResponse{} }),
		request(func() Message { return &OffsetForLeaderEpochRequest{} }),
		response(func() Message { return &OffsetForLeaderEpochResponse{} }),
		request(func() Message { return &SaslAuthenticateRequest{} }),
		response(func() Message { return &SaslAuthenticateResponse{} }),
		request(func() Message { return &DescribeClusterRequest{} }),
		response(func() Message { return &DescribeClusterResponse{} }),
		request(func() Message { return &ProduceRequest{} }),
		response(func() Message { return &ProduceResponse{} }),
		request(func() Message { return &FindCoordinatorRequest{} }),
		response(func() Message { return &FindCoordinatorResponse{} }),
		request(func() Message { return &InitProducerIdRequest{} }),
		response(func() Message { return &InitProducerIdResponse{} }),
		request(func() Message { return &DescribeConfigsRequest{} }),
		response(func() Message { return &DescribeConfigsResponse{} }),
		request(func() Message { return &IncrementalAlterConfigsRequest{} }),
		response(func() Message { return &IncrementalAlterConfigsResponse{} }),
		request(func() Message { return &CreateMirrorRequest{} }),
		response(func() Message { return &CreateMirrorResponse{} }),
		request(func() Message { return &StartMirrorTopicsRequest{} }),
		response(func() Message { return &StartMirrorTopicsResponse{} }),
		request(func() Message { return &StopMirrorTopicsRequest{} }),
		response(func() Message { return &StopMirrorTopicsResponse{} }),
		request(func() Message { return &ListMirrorsRequest{} }),
		response(func() Message { return &ListMirrorsResponse{} }),
		request(func() Message { return &DescribeMirrorsRequest{} }),
		response(func() Message { return &DescribeMirrorsResponse{} }),
		request(func() Message { return &ReadMirrorStatesRequest{} }),
		response(func() Message { return &ReadMirrorStatesResponse{} }),
		request(func() Message { return &WriteMirrorStatesRequest{} }),
		response(func() Message { return &WriteMirrorStatesResponse{} }),
		request(func() Message { return &PauseMirrorTopicsRequest{} }),
		response(func() Message { return &PauseMirrorTopicsResponse{} }),
		request(func() Message { return &ResumeMirrorTopicsRequest{} }),
		response(func() Message { return &ResumeMirrorTopicsResponse{} }),
		request(func() Message { return &DeleteMirrorRequest{} }),
		response(func() Message { return &DeleteMirrorResponse{} }),
		request(func() Message { return &BumpLeaderEpochsRequest{} }),
		response(func() Message { return &BumpLeaderEpochsResponse{} }),
	}
}

func TestAPIs_AgreeWithFranzGo(t *testing.T) {
	for _, api := range APIs() {
		req := kmsg.RequestForKey(api.Key)
		if api.KafkaMax == agentsOnly {
			if req != nil {
				t.Errorf("%s: key %d is %s to franz-go", api.Name, api.Key, kmsg.NameForKey(api.Key))
			}
			continue
		}
		name := strings.NewReplacer("Sasl", "SASL", "ProducerId", "ProducerID").Replace(api.Name)
		if req == nil || kmsg.NameForKey(api.Key) != name {
			t.Errorf("key %d is %s to us, %q to franz-go", api.Key, api.Name, kmsg.NameForKey(api.Key))
			continue
		}
		if api.KafkaMax > req.MaxVersion() {
			t.Errorf("%s: our highest version %d is above franz-go's %d", api.Name, api.KafkaMax, req.MaxVersion())
		}
		for v := api.Min; v <= api.KafkaMax; v++ {
			req.SetVersion(v)
			if req.IsFlexible() != flexible(api.Key, v) {
				t.Errorf("%s v%d: flexible is %t to us", api.Name, v, flexible(api.Key, v))
			}
		}
	}
}

func TestCodecs_AgreeWithFranzGoAtEveryVersion(t *testing.T) {
	for _, c := range codecs() {
		api, _ := LookupAPI(c.ours().Key())
		for v := api.Min; v <= api.Max; v++ {
			t.Run(fmt.Sprintf("%s/v%d", c.name, v), func(t *testing.T) {
				for seed := range uint64(60) {
					rng := rand.New(rand.NewPCG(seed, uint64(v)))
					theirs := c.theirs(v)
					if theirs == nil {
						ours := c.ours()
						fill(reflect.ValueOf(ours).Elem(), rng)
						checkPair(t, c, v, ours.AppendTo(nil, v), seed)
						continue
					}
					fill(reflect.ValueOf(theirs).Elem(), rng)
					theirs.SetVersion(v)
					dropLaterTags(theirs, v)
					checkPair(t, c, v, theirs.AppendTo(nil), seed)

					ours := c.ours()
					fill(reflect.ValueOf(ours).Elem(), rng)
					checkPair(t, c, v, ours.AppendTo(nil, v), seed)
				}
			})
		}
	}
}

// dropLaterTags takes out tagged fields that Kafka defines from a later version on: franz-go sends them in all flexible
// versions, where a Kafka broker would skip them as unknown.
func dropLaterTags(m kmsgMessage, version int16) {
	switch m := m.(type) {
	case *kmsg.FetchRequest:
		if version < 15 {
			m.ReplicaState.Default()
		}
		for i := range m.Topics {
			for j := range m.Topics[i].Partitions {
				p := &m.Topics[i].Partitions[j]
				if version < 17 {
					p.ReplicaDirectoryID = [16]byte{}
				}
				if version < 18 {
					p.HighWatermark = NoHighWatermark
				}
			}
		}
	case *kmsg.FetchResponse:
		if version < 16 {
			m.Brokers = nil
		}
	case *kmsg.ProduceResponse:
		if version >= 10 {
			return
		}
		m.Brokers = nil
		for i := range m.Topics {
			for j := range m.Topics[i].Partitions {
				m.Topics[i].Partitions[j].CurrentLeader.Default()
			}
		}
	}
}

// checkPair decodes b with both sides, compares field by field, and demands the same bytes back from both.
func checkPair(t *testing.T, c codec, version int16, b []byte, seed uint64) {
	t.Helper()
	ours, theirs := c.ours(), c.theirs(version)
	if err := ours.DecodeFrom(b, version); err != nil {
		t.Fatalf("seed %d: %v in %x", seed, err, b)
	}
	if again := ours.AppendTo(nil, version); !bytes.Equal(again, b) {
		t.Fatalf("seed %d: we encode %x again as %x", seed, b, again)
	}
	if theirs == nil {
		return
	}
	if err := theirs.ReadFrom(b); err != nil {
		t.Fatalf("seed %d: franz-go: %v in %x", seed, err, b)
	}
	if diff := compare(reflect.ValueOf(ours).Elem(), reflect.ValueOf(theirs).Elem()); diff != "" {
		t.Fatalf("seed %d: %s", seed, diff)
	}
	if again := theirs.AppendTo(nil); !bytes.Equal(again, b) {
		t.Fatalf("seed %d: franz-go encodes %x again as %x", seed, b, again)
	}
}

// fill puts random values, -1 among them, into every settable field; tags nobody knows stay empty.
func fill(v reflect.Value, rng *rand.Rand) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if f := v.Field(i); f.CanSet() && name != "UnknownTags" && name != "Version" {
				fill(f, rng)
			}
		}
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		switch rng.IntN(4) {
		case 0: // as it is: kmsg's default
		case 1:
			v.SetInt(-1)
		default:
			v.SetInt(int64(rng.Uint64()) >> (64 - v.Type().Bits()))
		}
	case reflect.String:
		v.SetString(randomString(rng))
	case reflect.Pointer:
		if rng.IntN(3) == 0 {
			v.SetZero()
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), rng)
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(rng.IntN(256)))
		}
	case reflect.Slice:
		fillSlice(v, rng)
	}
}

func fillSlice(v reflect.Value, rng *rand.Rand) {
	n := rng.IntN(4)
	if v.Type().Elem().Kind() == reflect.Uint8 {
		n = rng.IntN(300)
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		e := v.Index(i)
		if e.Kind() == reflect.Uint8 {
			e.SetUint(uint64(rng.IntN(256)))
			continue
		}
		if d := e.Addr().MethodByName("Default"); d.IsValid() {
			d.Call(nil)
		}
		fill(e, rng)
	}
}

func randomString(rng *rand.Rand) string {
	n := rng.IntN(12)
	if rng.IntN(10) == 0 {
		n = 120 + rng.IntN(200) // two varint bytes
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(' ' + rng.IntN(95))
	}
	return string(b)
}

// otherNames maps our field names to franz-go's where they differ.
var otherNames = map[string]string{
	"ThrottleMs": "ThrottleMillis", "MaxWaitMs": "MaxWaitMillis", "TimeoutMs": "TimeoutMillis",
	"SessionLifetimeMs": "SessionLifetimeMillis", "APIKeys": "ApiKeys", "APIKey": "ApiKey",
	"Mechanisms": "SupportedMechanisms", "AuthBytes": "SASLAuthBytes", "BrokerID": "NodeID",
	"Forgotten": "ForgottenTopics", "NodeEndpoints": "Brokers", "MaxBytes": "PartitionMaxBytes",
	"AbortedTxns": "AbortedTransactions", "PreferredReplica": "PreferredReadReplica",
	"Records": "RecordBatches", "Name": "Topic", "LeaderID": "Leader", "Isr": "ISR",
	"IncludeClusterAuthorizedOps": "IncludeClusterAuthorizedOperations",
	"IncludeTopicAuthorizedOps":   "IncludeTopicAuthorizedOperations",
	"ClusterAuthorizedOps":        "ClusterAuthorizedOperations AuthorizedOperations",
	"AuthorizedOps":               "AuthorizedOperations",
	"Index":                       "Partition",
	"TransactionTimeoutMs":        "TransactionTimeoutMillis",
}

// compare returns the first field that differs between one of our structures and franz-go's, "" for none.
func compare(ours, theirs reflect.Value) string {
	if theirs.Kind() != reflect.Struct {
		return compareValues(ours, theirs)
	}
	for i := range ours.NumField() {
		field := ours.Type().Field(i)
		if !field.IsExported() || field.Name == "Version" || field.Name == "MirrorLeaderEpoch" {
			continue
		}
		if field.Name == "TimeoutMs" && theirs.FieldByName("Version").Int() < 10 {
			continue // not on the wire; franz-go has a default of its own
		}
		other := theirs.FieldByName(field.Name)
		for _, name := range strings.Fields(otherNames[field.Name]) {
			if !other.IsValid() {
				other = theirs.FieldByName(name)
			}
		}
		if field.Name == "ReplicaID" || field.Name == "ReplicaEpoch" {
			other = replicaField(field.Name, theirs)
		}
		if !other.IsValid() {
			return fmt.Sprintf("%s.%s has no counterpart in %s", ours.Type(), field.Name, theirs.Type())
		}
		if diff := compareValues(ours.Field(i), other); diff != "" {
			return field.Name + ": " + diff
		}
	}
	return ""
}

// replicaField finds the replica's id and epoch, which moved into a tagged structure with Fetch v15.
func replicaField(name string, theirs reflect.Value) reflect.Value {
	state := theirs.FieldByName("ReplicaState")
	if state.IsValid() && (name == "ReplicaEpoch" || theirs.FieldByName("Version").Int() >= 15) {
		return state.FieldByName(strings.TrimPrefix(name, "Replica"))
	}
	return theirs.FieldByName(name)
}

func compareValues(ours, theirs reflect.Value) string {
	switch ours.Kind() {
	case reflect.Struct:
		return compare(ours, theirs)
	case reflect.Pointer:
		if theirs.Kind() != reflect.Pointer { // a string that may be null in some versions only
			return compareValues(reflect.ValueOf(deref(ours.Interface().(*string))), theirs)
		}
		if ours.IsNil() || theirs.IsNil() {
			if ours.IsNil() != theirs.IsNil() {
				return "null on one side"
			}
			return ""
		}
		return compareValues(ours.Elem(), theirs.Elem())
	case reflect.Slice:
		if ours.Len() != theirs.Len() {
			return fmt.Sprintf("%d elements, franz-go %d", ours.Len(), theirs.Len())
		}
		for i := range ours.Len() {
			if diff := compareValues(ours.Index(i), theirs.Index(i)); diff != "" {
				return fmt.Sprintf("%d: %s", i, diff)
			}
		}
		return ""
	}
	if theirs.Kind() == reflect.Pointer && !theirs.IsNil() {
		theirs = theirs.Elem()
	}
	if ours.CanInt() && theirs.CanInt() { // franz-go has types for enumerations
		if ours.Int() != theirs.Int() {
			return fmt.Sprintf("%d, franz-go %d", ours.Int(), theirs.Int())
		}
		return ""
	}
	if !ours.Equal(theirs) {
		return fmt.Sprintf("%v, franz-go %v", ours, theirs)
	}
	return ""
}

// FuzzDecoders checks every decoder: what it accepts encodes to the same value, franz-go agrees, a shorter input is
// refused, and memory stays in proportion to the input.
func FuzzDecoders(f *testing.F) {
	for i, c := range codecs() {
		api, _ := LookupAPI(c.ours().Key())
		for v := api.Min; v <= api.Max; v++ {
			rng := rand.New(rand.NewPCG(uint64(i), uint64(v)))
			ours := c.ours()
			fill(reflect.ValueOf(ours).Elem(), rng)
			f.Add(uint8(i), v, ours.AppendTo(nil, v))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, version int16, b []byte) {
		all := codecs()
		c := all[int(which)%len(all)]
		api, _ := LookupAPI(c.ours().Key())
		if version < api.Min || version > api.Max {
			return
		}
		ours := c.ours()
		if allocated(func() { _ = ours.DecodeFrom(b, version) }) > uint64(64*len(b)+32<<10) {
			t.Fatalf("%s v%d: %d bytes of input made it allocate far more", c.name, version, len(b))
		}
		if ours.DecodeFrom(b, version) != nil {
			return
		}
		canonical := ours.AppendTo(nil, version)
		again := c.ours()
		if err := again.DecodeFrom(canonical, version); err != nil {
			t.Fatalf("%s v%d: refuses what it encoded: %v", c.name, version, err)
		}
		if !reflect.DeepEqual(ours, again) {
			t.Fatalf("%s v%d: %+v became %+v", c.name, version, ours, again)
		}
		checkPair(t, c, version, canonical, 0)
		for n := range len(b) {
			if len(b) > 512 && n%37 != 0 {
				continue
			}
			if c.ours().DecodeFrom(b[:n], version) == nil {
				t.Fatalf("%s v%d: accepts %d of %d bytes", c.name, version, n, len(b))
			}
		}
	})
}

// allocated returns the bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// fewestAllocs is testing.AllocsPerRun, the least of a few tries: goroutines that earlier tests left to end allocate, too.
func fewestAllocs(runs int, f func()) float64 {
	fewest := testing.AllocsPerRun(runs, f)
	for range 5 {
		if fewest == 0 {
			break
		}
		fewest = min(fewest, testing.AllocsPerRun(runs, f))
	}
	return fewest
}

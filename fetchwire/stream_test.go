package fetchwire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"reflect"
	"testing"
	"time"
)

// scriptConn is a net.Conn in memory: each request written makes answer's bytes readable, in pieces of chunk's sizes.
type scriptConn struct {
	answer  func(request []byte) []byte
	chunk   func() int // nil = as much as is asked for
	pending []byte
	end     error // after pending; nil = io.EOF
	closed  bool
}

func (c *scriptConn) Write(p []byte) (int, error) {
	c.pending = c.answer(p)
	return len(p), nil
}

func (c *scriptConn) Read(p []byte) (int, error) {
	if len(c.pending) == 0 {
		if c.end != nil {
			return 0, c.end
		}
		return 0, io.EOF
	}
	if c.chunk != nil {
		p = p[:min(len(p), c.chunk())]
	}
	n := copy(p, c.pending)
	c.pending = c.pending[n:]
	return n, nil
}

func (c *scriptConn) Close() error {
	c.closed = true
	return nil
}
func (*scriptConn) LocalAddr() net.Addr              { return nil }
func (*scriptConn) RemoteAddr() net.Addr             { return nil }
func (*scriptConn) SetDeadline(time.Time) error      { return nil }
func (*scriptConn) SetReadDeadline(time.Time) error  { return nil }
func (*scriptConn) SetWriteDeadline(time.Time) error { return nil }

// scripted returns a Conn past its handshake that speaks exactly version of Fetch.
func scripted(sc *scriptConn, version int16) *Conn { return scriptedOver(sc, version) }

func scriptedOver(nc net.Conn, version int16) *Conn {
	c := newConn(nc, DialConfig{Addr: "script:9092", ClientID: "test"})
	c.agent = true
	for i, api := range APIs() {
		c.versions[i] = versionRange{lowest: api.Min, highest: api.Max, offered: true}
		if api.Key == KeyFetch {
			c.versions[i].highest = version
		}
	}
	return c
}

// fetchFrame frames body as the answer to the request with the correlation id found in request.
func fetchFrame(request, body []byte, version int16) []byte {
	frame := append([]byte{0, 0, 0, 0}, request[8:12]...)
	frame = appendNoTags(frame, flexible(KeyFetch, version))
	return finishFrame(append(frame, body...), 0)
}

// sampleResponse has two topics and three partitions with everything set that version can say.
func sampleResponse(version int16) *FetchResponse {
	part := func(index int32, records int) FetchPartitionResponse {
		p := NewFetchPartitionResponse(index)
		p.HighWatermark, p.LastStableOffset = 1000+int64(index), 900
		if version >= 5 {
			p.LogStartOffset = 5
		}
		if version >= 12 {
			p.CurrentLeader = LeaderIDAndEpoch{LeaderID: 3, LeaderEpoch: 4}
		}
		p.Records = bytes.Repeat([]byte{byte(index), 0xff, 7}, records/3)
		return p
	}
	m := &FetchResponse{ThrottleMs: 12, Topics: []FetchTopicResponse{
		{Topic: "alpha", Partitions: []FetchPartitionResponse{part(0, 30_000), part(1, 3)}},
		{Topic: "beta", Partitions: []FetchPartitionResponse{part(4, 0)}},
	}}
	last := &m.Topics[1].Partitions[0]
	last.Records = nil
	last.AbortedTxns = []FetchAbortedTxn{{1, 2}, {3, 4}}
	if version >= 7 {
		m.SessionID = 99
	}
	if version >= 12 {
		last.DivergingEpoch = EpochEndOffset{Epoch: 2, EndOffset: 17}
	}
	if version >= 13 {
		for i := range m.Topics {
			m.Topics[i].TopicID[0] = byte(i + 1)
			m.Topics[i].Topic = ""
		}
	}
	if version >= 16 {
		rack := "r1"
		m.NodeEndpoints = []NodeEndpoint{{NodeID: 3, Host: "h3", Port: 9092, Rack: &rack}, {NodeID: 4, Host: "h4"}}
	}
	return m
}

// requestFor asks for every partition of a response.
func requestFor(m *FetchResponse) *FetchRequest {
	req := &FetchRequest{ReplicaID: ConsumerReplicaID, ReplicaEpoch: -1, SessionEpoch: -1}
	place := make(map[string]int) // a topic may be repeated
	for _, t := range m.Topics {
		key := t.Topic + string(t.TopicID[:])
		i, known := place[key]
		if !known {
			i = len(req.Topics)
			place[key] = i
			req.Topics = append(req.Topics, FetchTopic{Topic: t.Topic, TopicID: t.TopicID})
		}
		for _, p := range t.Partitions {
			req.Topics[i].Partitions = append(req.Topics[i].Partitions,
				FetchPartition{Partition: p.Index, HighWatermark: NoHighWatermark})
		}
	}
	return req
}

// readStream reads a whole response into the form DecodeFrom gives, reading each partition's records in buffers of
// size's lengths.
func readStream(s *FetchStream, size func() int) (*FetchResponse, error) {
	head := s.Head()
	m := &FetchResponse{ThrottleMs: head.ThrottleMs, ErrorCode: head.ErrorCode, SessionID: head.SessionID}
	for s.Next() {
		h := s.Partition()
		p := NewFetchPartitionResponse(h.Index)
		p.ErrorCode, p.HighWatermark, p.LastStableOffset = h.ErrorCode, h.HighWatermark, h.LastStableOffset
		p.LogStartOffset, p.PreferredReplica = h.LogStartOffset, h.PreferredReplica
		for {
			buf := make([]byte, size())
			n, err := s.Read(buf)
			p.Records = append(p.Records, buf[:n]...)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return m, err
			}
		}
		if len(p.Records) != h.RecordsSize || s.Remaining() != 0 {
			return m, fmt.Errorf("%d bytes of records, %d announced", len(p.Records), h.RecordsSize)
		}
		tail, err := s.Finish()
		if err != nil {
			return m, err
		}
		p.DivergingEpoch, p.CurrentLeader, p.SnapshotID = tail.DivergingEpoch, tail.CurrentLeader, tail.SnapshotID
		p.AbortedTxns = make([]FetchAbortedTxn, h.AbortedTxns)
		if n := len(m.Topics); n == 0 || m.Topics[n-1].Topic != h.Topic || m.Topics[n-1].TopicID != h.TopicID {
			m.Topics = append(m.Topics, FetchTopicResponse{Topic: h.Topic, TopicID: h.TopicID})
		}
		last := &m.Topics[len(m.Topics)-1]
		last.Partitions = append(last.Partitions, p)
	}
	m.NodeEndpoints = s.NodeEndpoints()
	return m, s.Close()
}

// flatten makes whole and streamed responses comparable: what a stream does not tell apart is made equal.
func flatten(m *FetchResponse) *FetchResponse {
	out := &FetchResponse{ThrottleMs: m.ThrottleMs, ErrorCode: m.ErrorCode, SessionID: m.SessionID}
	for _, t := range m.Topics {
		for _, p := range t.Partitions {
			p.Records = append([]byte(nil), p.Records...)
			p.AbortedTxns = make([]FetchAbortedTxn, len(p.AbortedTxns))
			out.Topics = append(out.Topics, FetchTopicResponse{
				Topic: t.Topic, TopicID: t.TopicID, Partitions: []FetchPartitionResponse{p},
			})
		}
	}
	out.NodeEndpoints = append(out.NodeEndpoints, m.NodeEndpoints...)
	return out
}

func TestFetchStream_GivesWhatTheFrameHoldsAtEveryVersion(t *testing.T) {
	api, _ := LookupAPI(KeyFetch)
	for version := api.Min; version <= api.Max; version++ {
		for seed := range uint64(30) {
			rng := rand.New(rand.NewPCG(seed, 1))
			want := sampleResponse(version)
			body := want.AppendTo(nil, version)
			sc := &scriptConn{
				answer: func(req []byte) []byte { return fetchFrame(req, body, version) },
				chunk:  func() int { return 1 + rng.IntN(5000) },
			}
			c := scripted(sc, version)
			s, err := c.Fetch(t.Context(), requestFor(want))
			if err != nil {
				t.Fatalf("v%d seed %d: %v", version, seed, err)
			}
			got, err := readStream(s, func() int { return 1 + rng.IntN(20_000) })
			if err != nil {
				t.Fatalf("v%d seed %d: %v", version, seed, err)
			}
			if !reflect.DeepEqual(flatten(got), flatten(want)) {
				t.Fatalf("v%d seed %d: got %+v, want %+v", version, seed, flatten(got), flatten(want))
			}
		}
	}
}

func TestFetchStream_SkipsWhatIsNotRead(t *testing.T) {
	want := sampleResponse(17)
	body := want.AppendTo(nil, 17)
	c := scripted(&scriptConn{answer: func(req []byte) []byte { return fetchFrame(req, body, 17) }}, 17)
	for range 2 { // the connection can be used again
		s, err := c.Fetch(t.Context(), requestFor(want))
		if err != nil {
			t.Fatal(err)
		}
		if !s.Next() {
			t.Fatal(s.Err())
		}
		if _, err := io.ReadFull(s, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		if s.Remaining() != s.Partition().RecordsSize-100 {
			t.Errorf("remaining %d of %d", s.Remaining(), s.Partition().RecordsSize)
		}
		tail, err := s.Finish()
		if err != nil || tail.CurrentLeader.LeaderID != 3 {
			t.Fatalf("tail %+v, %v", tail, err)
		}
		if n, err := s.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("read behind the records: %d, %v", n, err)
		}
		if _, err := c.Metadata(t.Context(), &MetadataRequest{}); !errors.Is(err, ErrBusy) {
			t.Errorf("a call in the middle of a response: %v", err)
		}
		n := 0
		for s.Next() {
			n++
		}
		if n != 2 || s.Close() != nil {
			t.Errorf("%d further partitions, %v", n, s.Err())
		}
	}
}

func TestFetchStream_LeftUnreadBreaksTheConnection(t *testing.T) {
	want := sampleResponse(12)
	body := want.AppendTo(nil, 12)
	sc := &scriptConn{answer: func(req []byte) []byte { return fetchFrame(req, body, 12) }}
	c := scripted(sc, 12)
	s, err := c.Fetch(t.Context(), requestFor(want))
	if err != nil {
		t.Fatal(err)
	}
	s.Next()
	if err := s.Close(); !errors.Is(err, ErrConnBroken) {
		t.Errorf("Close in the middle: %v", err)
	}
	if _, err := c.Fetch(t.Context(), requestFor(want)); !errors.Is(err, ErrConnBroken) || !sc.closed {
		t.Errorf("the next fetch: %v, socket closed: %t", err, sc.closed)
	}
}

func TestFetchStream_CutAtEveryByteIsAnError(t *testing.T) {
	for _, version := range []int16{4, 11, 12, 17} {
		want := sampleResponse(version)
		want.Topics[0].Partitions[0].Records = []byte("some records")
		body := want.AppendTo(nil, version)
		whole := len(fetchFrame(make([]byte, 12), body, version))
		for cut := range whole {
			c := scripted(&scriptConn{answer: func(req []byte) []byte { return fetchFrame(req, body, version)[:cut] }}, version)
			s, err := c.Fetch(t.Context(), requestFor(want))
			if err == nil {
				_, err = readStream(s, func() int { return 1000 })
			}
			if cut == 0 && errors.Is(err, io.EOF) {
				continue
			}
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("v%d cut at %d of %d: %v", version, cut, whole, err)
			}
			if _, err := c.Fetch(t.Context(), requestFor(want)); !errors.Is(err, ErrConnBroken) {
				t.Fatalf("v%d cut at %d: the connection is used again: %v", version, cut, err)
			}
		}
	}
}

func TestFetchStream_RefusesHostileResponses(t *testing.T) {
	const version = 12
	good := sampleResponse(version)
	req := requestFor(good)
	one := func(change func(p *FetchPartitionResponse)) []byte {
		m := sampleResponse(version)
		change(&m.Topics[0].Partitions[0])
		return m.AppendTo(nil, version)
	}
	// A head up to the records' length of partition alpha-0.
	headOf := func(m *FetchResponse) []byte {
		b := m.AppendTo(nil, version)
		return b[:bytes.Index(b, m.Topics[0].Partitions[0].Records)-3]
	}
	cases := map[string]struct {
		frame func(request []byte) []byte
		want  error
	}{
		"wrong correlation id": {func(r []byte) []byte {
			f := fetchFrame(r, good.AppendTo(nil, version), version)
			f[7]++
			return f
		}, ErrCorrelation},
		"negative frame size":  {func([]byte) []byte { return []byte{0xff, 0xff, 0xff, 0xff, 0, 0} }, ErrMalformed},
		"frame of three bytes": {func([]byte) []byte { return []byte{0, 0, 0, 3, 0, 0, 0} }, ErrMalformed},
		"bytes behind the frame": {func(r []byte) []byte {
			m := FetchResponse{}
			return append(fetchFrame(r, m.AppendTo(nil, version), version), 1)
		}, ErrMalformed},
		"bytes left over in the frame": {func(r []byte) []byte {
			return fetchFrame(r, append(good.AppendTo(nil, version), 0), version)
		}, ErrMalformed},
		"topic count beyond the frame": {func(r []byte) []byte {
			return fetchFrame(r, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f}, version)
		}, ErrMalformed},
		"null topics": {func(r []byte) []byte {
			return fetchFrame(r, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, version)
		}, ErrMalformed},
		"records longer than the frame": {func(r []byte) []byte {
			return fetchFrame(r, append(headOf(good), 0xff, 0xff, 0xff, 0x0f, 1, 2, 3), version)
		}, ErrMalformed},
		"records length that is no varint": {func(r []byte) []byte {
			return fetchFrame(r, append(headOf(good), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3), version)
		}, ErrMalformed},
		"a partition nobody asked for": {func(r []byte) []byte {
			return fetchFrame(r, one(func(p *FetchPartitionResponse) { p.Index = 77 }), version)
		}, ErrUnexpectedPartition},
		"a topic nobody asked for": {func(r []byte) []byte {
			m := sampleResponse(version)
			m.Topics[0].Topic = "gamma"
			return fetchFrame(r, m.AppendTo(nil, version), version)
		}, ErrUnexpectedPartition},
		"an endless topic name": {func(r []byte) []byte {
			m := sampleResponse(version)
			m.Topics[0].Topic = string(bytes.Repeat([]byte{'a'}, 250))
			return fetchFrame(r, m.AppendTo(nil, version), version)
		}, ErrMalformed},
		"a size that is HTTP": {func([]byte) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") }, ErrCorrelation},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sc := &scriptConn{answer: tc.frame}
			c := scripted(sc, version)
			s, err := c.Fetch(t.Context(), req)
			if err == nil {
				_, err = readStream(s, func() int { return 4096 })
			}
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if !sc.closed {
				t.Error("the socket stays open")
			}
		})
	}
}

func TestFetchStream_NegativeLengthsOfOldVersions(t *testing.T) {
	const version = 11
	m := sampleResponse(version)
	body := m.AppendTo(nil, version)
	records := bytes.Index(body, m.Topics[0].Partitions[0].Records)
	for name, place := range map[string]int{
		"topics": 4 + 2 + 4, "topic name": 14, "partitions": 14 + 2 + 5, "aborted": records - 12, "records": records - 4,
	} {
		t.Run(name, func(t *testing.T) {
			bad := bytes.Clone(body)
			size := 4
			if name == "topic name" {
				size = 2
			}
			copy(bad[place:place+size], []byte{0x80, 0, 0, 0})
			c := scripted(&scriptConn{answer: func(r []byte) []byte { return fetchFrame(r, bad, version) }}, version)
			s, err := c.Fetch(t.Context(), requestFor(m))
			if err == nil {
				_, err = readStream(s, func() int { return 4096 })
			}
			var decode *DecodeError
			if !errors.As(err, &decode) || decode.Field == "" || decode.Version != version || decode.API != KeyFetch {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestFetchStream_FirstBatchLargerThanAskedFor(t *testing.T) {
	m := sampleResponse(17)
	m.Topics[0].Partitions[0].Records = make([]byte, 3<<20)
	req := requestFor(m)
	req.MaxBytes, req.Topics[0].Partitions[0].MaxBytes = 100, 100
	body := m.AppendTo(nil, 17)
	c := scripted(&scriptConn{answer: func(r []byte) []byte { return fetchFrame(r, body, 17) }}, 17)
	s, err := c.Fetch(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readStream(s, func() int { return 1 << 20 })
	if err != nil || len(got.Topics[0].Partitions[0].Records) != 3<<20 {
		t.Errorf("%d bytes, %v", len(got.Topics[0].Partitions[0].Records), err)
	}
}

func TestFetchStream_ManyNodeEndpointsDoNotNeedAWindow(t *testing.T) {
	m := &FetchResponse{}
	for i := range int32(2000) {
		m.NodeEndpoints = append(m.NodeEndpoints, NodeEndpoint{NodeID: i, Host: fmt.Sprintf("broker-%d.example", i), Port: 9})
	}
	body := m.AppendTo(nil, 16)
	c := scripted(&scriptConn{answer: func(r []byte) []byte { return fetchFrame(r, body, 16) }}, 16)
	s, err := c.Fetch(t.Context(), requestFor(m))
	if err != nil {
		t.Fatal(err)
	}
	if s.Next() || s.Err() != nil || !reflect.DeepEqual(s.NodeEndpoints(), m.NodeEndpoints) {
		t.Errorf("%d endpoints, %v", len(s.NodeEndpoints()), s.Err())
	}
}

// FuzzFetchStream compares the stream, fed by a socket that delivers odd sizes, with the decoder of whole frames.
func FuzzFetchStream(f *testing.F) {
	api, _ := LookupAPI(KeyFetch)
	for v := api.Min; v <= api.Max; v++ {
		m := sampleResponse(v)
		m.Topics[0].Partitions[0].Records = []byte("records")
		f.Add(v, uint64(v), m.AppendTo(nil, v))
	}
	f.Fuzz(func(t *testing.T, version int16, seed uint64, body []byte) {
		if version < api.Min || version > api.Max {
			return
		}
		var whole FetchResponse
		wholeErr := whole.DecodeFrom(body, version)
		rng := rand.New(rand.NewPCG(seed, 2))
		sc := &scriptConn{
			answer: func(r []byte) []byte { return fetchFrame(r, body, version) },
			chunk:  func() int { return 1 + rng.IntN(1+int(seed%64)) },
		}
		c := scripted(sc, version)
		req := requestFor(&whole)
		req.Version = version
		s, err := c.fetchAs(t.Context(), req, version)
		var got *FetchResponse
		if err == nil {
			got, err = readStream(s, func() int { return 1 + rng.IntN(300) })
		}
		switch {
		case err == nil && wholeErr != nil:
			t.Fatalf("v%d: the stream accepts what the decoder refuses: %v", version, wholeErr)
		case err == nil && !reflect.DeepEqual(flatten(got), flatten(&whole)):
			t.Fatalf("v%d: stream %+v, decoder %+v", version, flatten(got), flatten(&whole))
		case err != nil && wholeErr == nil && !stricter(&whole, err):
			t.Fatalf("v%d: the stream refuses what the decoder accepts: %v", version, err)
		case err != nil && !sc.closed:
			t.Fatal("the socket stays open after an error")
		}
	})
}

// stricter reports whether the stream may refuse what the decoder of whole frames accepts: it bounds names, which
// it must hold in its window, and known tagged fields.
func stricter(m *FetchResponse, err error) bool {
	for _, t := range m.Topics {
		if t.TopicID == ([16]byte{}) && (t.Topic == "" || len(t.Topic) > maxTopicNameBytes) {
			return true
		}
	}
	var decode *DecodeError
	return errors.As(err, &decode) &&
		(decode.Reason == "longer than any known one" || decode.Reason == "string is too long")
}

// canned is a script whose answer is made once, so that a measured loop allocates nothing for it.
func canned(m *FetchResponse, version int16) *scriptConn {
	frame := fetchFrame(make([]byte, 12), m.AppendTo(nil, version), version)
	return &scriptConn{answer: func(request []byte) []byte {
		copy(frame[4:8], request[8:12])
		return frame
	}}
}

// cannedFetch prepares a loop body that fetches m from memory.
func cannedFetch(tb testing.TB, m *FetchResponse, version int16) func() {
	return fetchLoop(tb, scripted(canned(m, version), version), m)
}

// fetchLoop prepares a loop body that fetches m through a session, records into one buffer.
func fetchLoop(tb testing.TB, c *Conn, m *FetchResponse) func() {
	version, err := c.Version(KeyFetch)
	if err != nil {
		tb.Fatal(err)
	}
	session := NewFetchSession(version)
	var wanted []SessionPartition
	for i, t := range m.Topics {
		for _, p := range t.Partitions {
			wanted = append(wanted, SessionPartition{
				Topic: fmt.Sprint("topic-", i), TopicID: t.TopicID, Slot: len(wanted),
				FetchPartition: FetchPartition{Partition: p.Index, MaxBytes: 1 << 20},
			})
		}
	}
	buf := make([]byte, 1<<20)
	ctx, cancel := context.WithCancel(tb.Context())
	tb.Cleanup(cancel)
	return func() {
		for i := range wanted {
			wanted[i].FetchOffset++
		}
		s, err := c.Fetch(ctx, session.Next(FetchParams{MaxWaitMs: 500, MinBytes: 1, MaxBytes: 1 << 30}, wanted))
		if err != nil {
			tb.Fatal(err)
		}
		if err := session.HandleResponse(s.Head().SessionID, s.Head().ErrorCode); err != nil {
			tb.Fatal(err)
		}
		for s.Next() {
			for s.Remaining() > 0 {
				if _, err := s.Read(buf); err != nil {
					tb.Fatal(err)
				}
			}
			if _, err := s.Finish(); err != nil {
				tb.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			tb.Fatal(err)
		}
	}
}

func cannedResponse(version int16, topics, partitions, records int) *FetchResponse {
	m := &FetchResponse{SessionID: 5}
	for i := range topics {
		t := FetchTopicResponse{Topic: fmt.Sprint("topic-", i)}
		if version >= 13 {
			binary.BigEndian.PutUint32(t.TopicID[:], uint32(i+1))
		}
		for j := range int32(partitions) {
			p := NewFetchPartitionResponse(j)
			p.Records = make([]byte, records)
			t.Partitions = append(t.Partitions, p)
		}
		m.Topics = append(m.Topics, t)
	}
	return m
}

func TestFetch_AllocatesNothingInTheSteadyState(t *testing.T) {
	for _, version := range []int16{4, 7, 11, 12, 17, 18} {
		loop := cannedFetch(t, cannedResponse(version, 5, 8, 20_000), version)
		loop()
		if n := fewestAllocs(100, loop); n != 0 {
			t.Errorf("v%d: %v allocations for each fetch of 40 partitions", version, n)
		}
	}
}

func BenchmarkFetchStream(b *testing.B) {
	for _, bc := range []struct{ partitions, records int }{{1, 1 << 20}, {16, 64 << 10}, {100, 4 << 10}, {1000, 0}} {
		b.Run(fmt.Sprintf("partitions=%d/records=%d", bc.partitions, bc.records), func(b *testing.B) {
			m := cannedResponse(17, 1, bc.partitions, bc.records)
			loop := cannedFetch(b, m, 17)
			loop()
			b.SetBytes(int64(len(m.AppendTo(nil, 17))))
			b.ReportAllocs()
			for b.Loop() {
				loop()
			}
		})
	}
}

// readFrame reads one request, its size field included, to buf's start: a socket may hand over a large one in pieces.
// It allocates nothing, so that a benchmark counts the client's allocations only.
func readFrame(r io.Reader, buf []byte) error {
	if _, err := io.ReadFull(r, buf[:4]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(buf)
	if int64(size) > int64(len(buf)-4) {
		return ErrFrameTooLarge
	}
	_, err := io.ReadFull(r, buf[4:4+size])
	return err
}

// BenchmarkFetchLoopback reads canned responses from a TCP socket: what the stream and the kernel cost together.
func BenchmarkFetchLoopback(b *testing.B) {
	for _, bc := range []struct{ partitions, records int }{{1, 16 << 20}, {64, 256 << 10}, {1000, 1 << 10}} {
		b.Run(fmt.Sprintf("partitions=%d/records=%d", bc.partitions, bc.records), func(b *testing.B) {
			m := cannedResponse(17, 1, bc.partitions, bc.records)
			script := canned(m, 17)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			go func() {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				defer func() { _ = nc.Close() }()
				request := make([]byte, 1<<20)
				for {
					if err := readFrame(nc, request); err != nil {
						return
					}
					if _, err := nc.Write(script.answer(request)); err != nil {
						return
					}
				}
			}()
			nc, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = nc.Close() }()
			loop := fetchLoop(b, scriptedOver(nc, 17), m)
			loop()
			b.SetBytes(int64(len(m.AppendTo(nil, 17))))
			b.ReportAllocs()
			for b.Loop() {
				loop()
			}
		})
	}
}

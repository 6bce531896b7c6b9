package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
)

// spec describes a batch for tests; the zero value of most fields is the usual one.
type spec struct {
	base, last  int64
	epoch       int32
	ms          int64 // max and base timestamp
	pid         int64 // 0 means none
	pepoch      int16
	seq         int32
	txn         bool
	control     int // -1 none by default through the constructors
	coordinator int32
	count       int32 // -1: last-base+1
	value       int   // bytes of every record's value
	attrs       int16 // or-ed in
}

// data is a plain batch of offsets base..last.
func data(base, last int64) spec {
	return spec{base: base, last: last, ms: 1_700_000_000_000 + base, control: -1, count: -1, value: 40}
}

// txnData is a transactional batch of producer pid.
func txnData(base, last, pid int64, seq int32) spec {
	s := data(base, last)
	s.pid, s.seq, s.txn = pid, seq, true
	return s
}

// marker is an ABORT (0), COMMIT (1) or other control batch; pid -1 means none.
func marker(base, pid int64, kind int) spec {
	s := data(base, base)
	s.pid, s.control, s.txn = pid, kind, kind < 2
	return s
}

func (s spec) at(epoch int32) spec { s.epoch = epoch; return s }

func (s spec) ts(ms int64) spec { s.ms = ms; return s }

func (s spec) bytes() []byte {
	var records []byte
	if s.control >= 0 {
		key := []byte{0, 0, byte(s.control >> 8), byte(s.control)}
		value := binary.BigEndian.AppendUint32([]byte{0, 0}, uint32(s.coordinator))
		records = appendTestRecord(records, 0, key, value)
	} else {
		for o := s.base; o <= s.last && s.last-s.base < 10000; o++ {
			records = appendTestRecord(records, o-s.base, fmt.Appendf(nil, "k%d", o), bytes.Repeat([]byte{'v'}, s.value))
		}
	}
	count := s.count
	if count < 0 {
		count = int32(s.last - s.base + 1)
	}
	pid, pepoch, seq := s.pid, s.pepoch, s.seq
	if pid <= 0 {
		pid, pepoch, seq = -1, -1, -1
	}
	if s.control >= 0 {
		seq = -1
	}
	attrs := s.attrs
	if s.txn {
		attrs |= attrTransactional
	}
	if s.control >= 0 {
		attrs |= attrControl
	}
	b := make([]byte, batchHeaderSize, batchHeaderSize+len(records))
	binary.BigEndian.PutUint64(b[baseOffsetPos:], uint64(s.base))
	binary.BigEndian.PutUint32(b[leaderEpochPos:], uint32(s.epoch))
	b[magicPos] = 2
	binary.BigEndian.PutUint16(b[attributesPos:], uint16(attrs))
	binary.BigEndian.PutUint32(b[lastOffsetDeltaPos:], uint32(s.last-s.base))
	binary.BigEndian.PutUint64(b[baseTimestampPos:], uint64(s.ms))
	binary.BigEndian.PutUint64(b[maxTimestampPos:], uint64(s.ms))
	binary.BigEndian.PutUint64(b[producerIDPos:], uint64(pid))
	binary.BigEndian.PutUint16(b[producerEpochPos:], uint16(pepoch))
	binary.BigEndian.PutUint32(b[baseSequencePos:], uint32(seq))
	binary.BigEndian.PutUint32(b[recordsCountPos:], uint32(count))
	b = append(b, records...)
	return reseal(b)
}

// reseal sets length and CRC.
func reseal(b []byte) []byte {
	binary.BigEndian.PutUint32(b[lengthPos:], uint32(len(b)-lengthOverhead))
	binary.BigEndian.PutUint32(b[crcPos:], crc32.Checksum(b[attributesPos:], castagnoli))
	return b
}

func appendTestRecord(dst []byte, delta int64, key, value []byte) []byte {
	var body []byte
	body = append(body, 0)
	body = binary.AppendVarint(body, 0)
	body = binary.AppendVarint(body, delta)
	body = binary.AppendVarint(body, int64(len(key)))
	body = append(body, key...)
	body = binary.AppendVarint(body, int64(len(value)))
	body = append(body, value...)
	body = binary.AppendVarint(body, 0)
	dst = binary.AppendVarint(dst, int64(len(body)))
	return append(dst, body...)
}

// join is the concatenated batches.
func join(specs ...spec) []byte {
	var b []byte
	for _, s := range specs {
		b = append(b, s.bytes()...)
	}
	return b
}

// batches is n batches of per records each from base on.
func batches(base int64, n, per int) []spec {
	var all []spec
	for range n {
		all = append(all, data(base, base+int64(per)-1))
		base += int64(per)
	}
	return all
}

var testPartition = TopicPartition{Topic: "orders", Partition: 0}

// testConfig has a small index interval.
func testConfig(t testing.TB) Config {
	cfg := DefaultConfig()
	cfg.IndexIntervalBytes = 300
	cfg.SegmentBytes = 1 << 20
	cfg.CutDir = filepath.Join(t.TempDir(), "cut")
	return cfg
}

// testParams opens dir as a new partition would be.
func testParams(t testing.TB) openParams {
	return openParams{path: filepath.Join(t.TempDir(), "orders-0"), tp: testPartition, cfg: testConfig(t), clean: true}
}

// mustOpen opens a log that ends the test with a Check, a close, and a check of the closed directory.
func mustOpen(t testing.TB, p openParams) *Log {
	t.Helper()
	l, _ := mustOpenReport(t, p)
	return l
}

func mustOpenReport(t testing.TB, p openParams) (*Log, RecoveryReport) {
	t.Helper()
	l, report, err := openLog(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { checkAndClose(t, l) })
	return l, report
}

func checkAndClose(t testing.TB, l *Log) {
	t.Helper()
	if l.closed {
		return
	}
	if l.Failed() != nil {
		_ = l.Close() // a failed log says so again
		return
	}
	if err := l.Check(); err != nil {
		t.Errorf("open: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	findings, err := CheckDir(l.dir, l.cfg)
	if err != nil {
		t.Error(err)
	}
	for _, f := range findings {
		t.Errorf("closed: %v", f)
	}
}

// crash lets go of the log without writing anything, as kill -9 does.
func crash(t testing.TB, l *Log) {
	t.Helper()
	l.closed = true
	for _, s := range l.list() {
		s.mu.Lock()
		s.indexes = nil // what they buffer is lost
		s.mu.Unlock()
		if err := s.letGo(); err != nil {
			t.Fatal(err)
		}
	}
}

// reopenDirty opens the directory after a crash, with the recovery point the log had persisted.
func reopenDirty(t testing.TB, p openParams, recoveryPoint int64) (*Log, RecoveryReport) {
	t.Helper()
	p.clean, p.recoveryPoint = false, recoveryPoint
	return mustOpenReport(t, p)
}

func mustAppend(t testing.TB, l *Log, specs ...spec) AppendInfo {
	t.Helper()
	info, err := l.AppendAsFollower(join(specs...), -1)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// content is every published byte of the log, segment after segment, through Read.
func content(t testing.TB, l *Log) []byte {
	t.Helper()
	var out bytes.Buffer
	for offset := l.LogStartOffset(); ; {
		s, err := l.Read(offset, 1<<20, ReadLogEnd)
		if err != nil {
			t.Fatal(err)
		}
		n, err := s.WriteTo(&out)
		next, size := s.NextOffset(), s.Size()
		if err = errors.Join(err, s.Release()); err != nil || n != size {
			t.Fatalf("%d of %d bytes: %v", n, size, err)
		}
		if size == 0 {
			return out.Bytes()
		}
		offset = next
	}
}

func wantContent(t testing.TB, l *Log, want []byte) {
	t.Helper()
	if have := content(t, l); !bytes.Equal(have, want) {
		t.Errorf("log holds %d bytes, want %d; first difference at %d", len(have), len(want), firstDiff(have, want))
	}
}

func firstDiff(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func wantOffsets(t testing.TB, l *Log, start, end int64) {
	t.Helper()
	if l.LogStartOffset() != start || l.LogEndOffset() != end {
		t.Errorf("log is [%d, %d), want [%d, %d)", l.LogStartOffset(), l.LogEndOffset(), start, end)
	}
}

// fileSizes is name to size of the files whose name has suffix.
func fileSizes(t testing.TB, dir, suffix string) map[string]int64 {
	t.Helper()
	sizes := make(map[string]int64)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == suffix {
			info, err := e.Info()
			if err != nil {
				t.Fatal(err)
			}
			sizes[e.Name()] = info.Size()
		}
	}
	return sizes
}

package segment

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// DigestRange is how many offsets one digest covers: ranges begin at its multiples.
const DigestRange = 1 << 20

// A digests file is text. It stands in a mirrored partition's directory, where a broker ignores it.
//
//	digests 0                                   version
//	verified 524288                             checked in the background up to here (exclusive)
//	highest-producer-id 4002                    ever seen, -1: none
//	start 0                                     batches from here on are in the digests
//	next 1048600 1048576 2 <hex>                resume at offset 1048600: the last range, its batches, xxhash's state
//	0 16384 1048600 93a1b2c3d4e5f607            range start, batches, end of the last, xxhash64 of their header facts
//
// The header facts of a batch, big-endian, in file order: base offset (8), last offset (8), size in bytes (4), CRC (4),
// attributes (2), magic (1). The leader epoch is left out, so that a rebased copy has its source's digests, and so is
// where segments begin. A batch belongs to the range of its base offset.
const digestsVersion = "digests 0"

const digestFactsSize = 27

// ErrCorruptDigests says that a digests file does not parse: it is to be made anew from the batches.
var ErrCorruptDigests = errors.New("corrupt digests file")

// RangeDigest is the digest of the batches whose base offset lies in [Start, Start+DigestRange).
type RangeDigest struct {
	Start    int64
	Batches  int64
	End      int64  // of the last batch, exclusive; it may reach into the next range
	Sum      uint64 // xxhash64
	Complete bool   // no batch of it can come any more
}

// Digests are the running digests of one partition. They are made from batch headers while appending, and let two
// sides compare terabytes by exchanging kilobytes. A Digests belongs to its log's owner.
type Digests struct {
	start    int64 // batches from here on are in
	next     int64 // the first offset that is not
	verified int64
	highest  int64

	done    []RangeDigest // complete, rising
	current RangeDigest   // Batches is 0 where there is none yet
	hash    xxhash.Digest
	facts   [digestFactsSize]byte
}

// NewDigests returns the digests of a log that starts at offset, before any batch.
func NewDigests(offset int64) *Digests {
	d := &Digests{start: offset, next: offset, verified: offset, highest: -1}
	d.hash.Reset()
	return d
}

// Add takes the header of the next batch in. A batch that begins below NextOffset is in already and is left out, so
// that a rescan may begin anywhere at or before it. Allocates nothing within a range.
func (d *Digests) Add(b Batch) {
	base := b.BaseOffset()
	if d.current.Batches == 0 && len(d.done) == 0 && base < d.start && b.LastOffset() >= d.start {
		d.start, d.next = base, base // a log that starts inside its first batch has it whole
	}
	if base < d.next {
		return
	}
	if rangeStart := base - base%DigestRange; d.current.Batches == 0 {
		d.begin(rangeStart)
	} else if rangeStart != d.current.Start {
		d.finish()
		d.begin(rangeStart)
	}
	f := d.facts[:]
	binary.BigEndian.PutUint64(f[0:], uint64(base))
	binary.BigEndian.PutUint64(f[8:], uint64(b.LastOffset()))
	binary.BigEndian.PutUint32(f[16:], uint32(b.Size()))
	binary.BigEndian.PutUint32(f[20:], b.CRC())
	binary.BigEndian.PutUint16(f[24:], uint16(b.Attributes()))
	f[26] = byte(b.Magic())
	_, _ = d.hash.Write(f) // a hash takes everything
	d.current.Batches++
	d.next = b.LastOffset() + 1
	d.highest = max(d.highest, b.ProducerID())
}

func (d *Digests) begin(start int64) {
	d.current = RangeDigest{Start: start}
	d.hash.Reset()
}

func (d *Digests) finish() {
	d.current.End, d.current.Sum, d.current.Complete = d.next, d.hash.Sum64(), true
	d.done = append(d.done, d.current)
	d.current = RangeDigest{}
}

// NextOffset is the first offset whose batch is not in the digests: where a rescan has to begin at the latest.
func (d *Digests) NextOffset() int64 { return d.next }

// StartOffset is the offset from which batches are in the digests. The range that holds it is only comparable with
// that of a log that starts at the same offset.
func (d *Digests) StartOffset() int64 { return d.start }

// VerifiedUpTo is the offset up to which (exclusive) the partition was checked in the background.
func (d *Digests) VerifiedUpTo() int64 { return d.verified }

// SetVerifiedUpTo says that the partition was checked up to offset (exclusive).
func (d *Digests) SetVerifiedUpTo(offset int64) { d.verified = min(offset, d.next) }

// HighestProducerID is the highest producer id of all batches that were ever in, -1 where there was none. It never
// falls: a cluster that takes over has to stay above it.
func (d *Digests) HighestProducerID() int64 { return d.highest }

// Ranges returns the digests, rising. The slice is the caller's.
func (d *Digests) Ranges() []RangeDigest {
	all := append(make([]RangeDigest, 0, len(d.done)+1), d.done...)
	if d.current.Batches > 0 {
		c := d.current
		c.End, c.Sum, c.Complete = d.next, d.hash.Sum64(), d.next >= c.Start+DigestRange
		all = append(all, c)
	}
	return all
}

// TruncateTo takes the batches from offset on out again. A range that is cut inside has to be fed anew: NextOffset says
// from where, at or below offset.
func (d *Digests) TruncateTo(offset int64) {
	if offset >= d.next {
		return
	}
	keep := len(d.done)
	// A range stays only where no batch of it was cut and none can come any more.
	for keep > 0 && max(d.done[keep-1].End, d.done[keep-1].Start+DigestRange) > offset {
		keep--
	}
	d.done = d.done[:keep]
	d.current = RangeDigest{}
	d.hash.Reset()
	d.next = d.start
	if keep > 0 {
		d.next = d.done[keep-1].End
	}
	d.verified = min(d.verified, d.next)
}

// Restart empties the digests: the log starts anew at offset. The highest producer id stays.
func (d *Digests) Restart(offset int64) {
	highest := d.highest
	*d = *NewDigests(offset)
	d.highest = highest
}

// AppendTo appends the digests file to dst.
func (d *Digests) AppendTo(dst []byte) []byte {
	dst = fmt.Appendf(dst, "%s\nverified %d\nhighest-producer-id %d\nstart %d\n",
		digestsVersion, d.verified, d.highest, d.start)
	state, err := d.hash.MarshalBinary()
	if err != nil { // it has no way to fail
		panic("BUG: xxhash state: " + err.Error())
	}
	dst = fmt.Appendf(dst, "next %d %d %d %s\n", d.next, d.current.Start, d.current.Batches, hex.EncodeToString(state))
	for _, r := range d.done {
		dst = fmt.Appendf(dst, "%d %d %d %016x\n", r.Start, r.Batches, r.End, r.Sum)
	}
	return dst
}

// ReadDigests reads a digests file. The error wraps fs.ErrNotExist where there is none, and ErrCorruptDigests, with the
// line, where it does not parse.
func ReadDigests(path string) (*Digests, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d, err := parseDigests(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// openDigests reads a digests file; where it is absent or damaged it returns nil and, for damage, why.
func openDigests(path string) (*Digests, error) {
	d, err := ReadDigests(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return d, err
}

func digestsError(line int, text string) error {
	return fmt.Errorf("line %d: %.80q: %w", line, text, ErrCorruptDigests)
}

func parseDigests(b []byte) (*Digests, error) {
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if len(lines) < 5 || lines[0] != digestsVersion {
		return nil, digestsError(1, lines[0])
	}
	d := &Digests{}
	for i, field := range []struct {
		word string
		to   *int64
	}{{"verified", &d.verified}, {"highest-producer-id", &d.highest}, {"start", &d.start}} {
		text, ok := strings.CutPrefix(lines[i+1], field.word+" ")
		v, err := strconv.ParseInt(text, 10, 64)
		if !ok || err != nil {
			return nil, digestsError(i+2, lines[i+1])
		}
		*field.to = v
	}
	if !d.parseNext(lines[4]) || d.start < 0 || d.next < d.start || d.verified > d.next || d.highest < -1 {
		return nil, digestsError(5, lines[4])
	}
	for i, line := range lines[5:] {
		r, ok := parseRange(line)
		n := len(d.done)
		if !ok || n > 0 && (r.Start <= d.done[n-1].Start || r.End <= d.done[n-1].End) || r.End > d.next ||
			d.current.Batches > 0 && r.Start >= d.current.Start {
			return nil, digestsError(i+6, line)
		}
		d.done = append(d.done, r)
	}
	return d, nil
}

// parseNext reads where to go on: the next offset, the range at hand, and the hash of what is in it.
func (d *Digests) parseNext(line string) bool {
	words := strings.Split(line, " ")
	if len(words) != 5 || words[0] != "next" {
		return false
	}
	var nextErr, startErr, batchesErr error
	d.next, nextErr = strconv.ParseInt(words[1], 10, 64)
	d.current.Start, startErr = strconv.ParseInt(words[2], 10, 64)
	d.current.Batches, batchesErr = strconv.ParseInt(words[3], 10, 64)
	state, stateErr := hex.DecodeString(words[4])
	if errors.Join(nextErr, startErr, batchesErr, stateErr) != nil || d.current.Batches < 0 ||
		d.current.Start < 0 || d.current.Start%DigestRange != 0 {
		return false
	}
	return d.hash.UnmarshalBinary(state) == nil
}

func parseRange(line string) (RangeDigest, bool) {
	words := strings.Split(line, " ")
	if len(words) != 4 || len(words[3]) != 16 {
		return RangeDigest{}, false
	}
	start, startErr := strconv.ParseInt(words[0], 10, 64)
	batches, batchesErr := strconv.ParseInt(words[1], 10, 64)
	end, endErr := strconv.ParseInt(words[2], 10, 64)
	sum, sumErr := strconv.ParseUint(words[3], 16, 64)
	if errors.Join(startErr, batchesErr, endErr, sumErr) != nil || start < 0 || start%DigestRange != 0 ||
		batches <= 0 || end <= start {
		return RangeDigest{}, false
	}
	return RangeDigest{Start: start, Batches: batches, End: end, Sum: sum, Complete: true}, true
}

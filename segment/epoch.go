package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// A leader-epoch-checkpoint file is text. Kafka: LeaderEpochCheckpointFile.
//
//	0                        version
//	2                        number of entries
//	0 0                      epoch, and the first offset that was written in it
//	2 751864
//
// A source-leader-epoch-checkpoint is the same under one line that says whose epochs they are:
//
//	source 5L6g3nShT-eMCtK--X86sw phIVGnTWSMKcT9jBWWtxDQ 700  cluster id, topic id, where the log ended when it was bound
//
// with the word announced behind it where the epochs are not those of the batches: see Log.AnnounceEpochs.

// UndefinedEpoch and UndefinedOffset are Kafka's values for "not known" in answers about epochs.
const (
	UndefinedEpoch  int32 = -1
	UndefinedOffset int64 = -1
)

// ErrEpochNegative says that an epoch or start offset below 0 was to be entered.
var ErrEpochNegative = errors.New("negative leader epoch or start offset")

// EpochEntry says that Epoch began at StartOffset.
type EpochEntry struct {
	Epoch       int32
	StartOffset int64
}

// SourceID names the topic that a partition's epochs come from: the source cluster, and the topic's id there.
type SourceID struct {
	ClusterID string
	TopicID   TopicID
}

// LeaderEpochCache is the history of leader epochs of one partition, and the file that keeps it.
//
// Every change but AssignLater's is in the file, synced, before the method returns. Queries may come from any
// goroutine; changes belong to the log's owner. Kafka: LeaderEpochFileCache.
type LeaderEpochCache struct {
	path string

	// atomic; only the owner changes it, all but AssignLater under writing
	history atomic.Pointer[epochHistory]

	// guarded by writing, which is held while the file is replaced
	writing sync.Mutex
	written *epochHistory // what the file holds
}

// epochHistory is never changed once it is visible. Both epoch and start offset strictly rise.
type epochHistory struct {
	entries []EpochEntry
	source  *SourceID // nil in a leader-epoch-checkpoint
	from    int64     // batches that end below it came before the binding: their epochs are not the source's
	// announced: the source tells its epochs beside the batches, whose own are another's.
	announced bool
}

// with is h with other entries.
func (h *epochHistory) with(entries []EpochEntry) *epochHistory {
	return &epochHistory{entries: entries, source: h.source, from: h.from, announced: h.announced}
}

// NewLeaderEpochCache returns an empty cache that will write path at its first change: for a file that was lost or
// cannot be read, before it is rebuilt from the batches.
func NewLeaderEpochCache(path string) *LeaderEpochCache {
	c := &LeaderEpochCache{path: path}
	c.written = &epochHistory{}
	c.history.Store(c.written)
	return c
}

// OpenLeaderEpochCache reads path. A file that is absent or empty has no entries.
//
// Entries that do not rise are dropped as Kafka drops them, the file is written anew, and dropped says how many
// there were. ErrCorruptCheckpoint names the line of a file that does not parse. Kafka: LeaderEpochFileCache
// constructor.
func OpenLeaderEpochCache(path string) (c *LeaderEpochCache, dropped int, err error) {
	c = NewLeaderEpochCache(path)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	h, dropped, err := parseEpochFile(b)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", path, err)
	}
	if dropped > 0 {
		return c, dropped, c.store(&h)
	}
	c.written = &h
	c.history.Store(&h)
	return c, 0, nil
}

// store makes h the history: in the file first, then for readers.
func (c *LeaderEpochCache) store(h *epochHistory) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := replaceFile(c.path, h.append(nil)); err != nil {
		return err
	}
	c.written = h
	c.history.Store(h)
	return nil
}

// Sync puts what AssignLater entered into the file. The owner, or one goroutine beside it.
func (c *LeaderEpochCache) Sync() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	h := c.history.Load()
	if h == c.written {
		return nil
	}
	if err := replaceFile(c.path, h.append(nil)); err != nil {
		return err
	}
	c.written = h
	return nil
}

// Assign enters that epoch began at startOffset, where that is news. Entries of the same or a higher epoch, or with
// the same or a higher start offset, go. ErrEpochNegative changes nothing. Owner only. Allocates nothing for
// the latest epoch. Kafka: LeaderEpochFileCache.assign.
func (c *LeaderEpochCache) Assign(epoch int32, startOffset int64) error {
	h, err := c.assigned(epoch, startOffset)
	if err != nil || h == nil {
		return err
	}
	return c.store(h)
}

// AssignLater is Assign for an epoch that the batches tell as well: it is in the file after Sync, or the next other
// change. Owner only.
func (c *LeaderEpochCache) AssignLater(epoch int32, startOffset int64) error {
	h, err := c.assigned(epoch, startOffset)
	if err != nil || h == nil {
		return err
	}
	c.history.Store(h)
	return nil
}

// assigned returns the history with the new entry, nil where it is no news.
func (c *LeaderEpochCache) assigned(epoch int32, startOffset int64) (*epochHistory, error) {
	if epoch < 0 || startOffset < 0 {
		return nil, fmt.Errorf("%s: epoch %d from offset %d: %w", c.path, epoch, startOffset, ErrEpochNegative)
	}
	h := c.history.Load()
	entries, changed := assignEpoch(h.entries, epoch, startOffset)
	if !changed {
		return nil, nil //nolint:nilnil // no change is no error
	}
	return h.with(entries), nil
}

// assignEpoch returns entries with the new one; the old slice is not changed.
func assignEpoch(entries []EpochEntry, epoch int32, startOffset int64) ([]EpochEntry, bool) {
	keep := len(entries)
	if keep > 0 && entries[keep-1].Epoch == epoch && startOffset >= entries[keep-1].StartOffset {
		return entries, false
	}
	for keep > 0 && (entries[keep-1].Epoch >= epoch || entries[keep-1].StartOffset >= startOffset) {
		keep--
	}
	return append(slices.Clone(entries[:keep]), EpochEntry{Epoch: epoch, StartOffset: startOffset}), true
}

// TruncateFromEnd drops the entries that start at or after offset. Owner only.
// Kafka: LeaderEpochFileCache.truncateFromEndAsyncFlush.
func (c *LeaderEpochCache) TruncateFromEnd(offset int64) error {
	h := c.history.Load()
	keep := len(h.entries)
	for keep > 0 && h.entries[keep-1].StartOffset >= offset {
		keep--
	}
	if keep == len(h.entries) && h.from <= offset {
		return nil
	}
	cut := h.with(slices.Clone(h.entries[:keep]))
	cut.from = min(h.from, offset)
	return c.store(cut)
}

// TruncateFromStart makes offset the start of the history: of the entries that start at or before it the last stays
// and starts there. Owner only. Kafka: LeaderEpochFileCache.truncateFromStartAsyncFlush.
func (c *LeaderEpochCache) TruncateFromStart(offset int64) error {
	h := c.history.Load()
	first := -1
	for first+1 < len(h.entries) && h.entries[first+1].StartOffset <= offset {
		first++
	}
	if first < 0 || first == 0 && h.entries[0].StartOffset == offset {
		return nil
	}
	entries := slices.Clone(h.entries[first:])
	entries[0].StartOffset = offset
	return c.store(h.with(entries))
}

// Clear drops every entry. Owner only. Kafka: LeaderEpochFileCache.clearAndFlush.
func (c *LeaderEpochCache) Clear() error {
	h := c.history.Load()
	if len(h.entries) == 0 && h.from == 0 {
		return nil
	}
	return c.store(&epochHistory{source: h.source, announced: h.announced})
}

// Replace makes entries the whole history, as another side knows it. Those that do not rise are dropped as Assign
// would drop them. The slice stays the caller's. Owner only.
func (c *LeaderEpochCache) Replace(entries []EpochEntry) error {
	var kept []EpochEntry
	for _, e := range entries {
		if e.Epoch < 0 || e.StartOffset < 0 {
			return fmt.Errorf("%s: epoch %d from offset %d: %w", c.path, e.Epoch, e.StartOffset, ErrEpochNegative)
		}
		kept, _ = assignEpoch(kept, e.Epoch, e.StartOffset)
	}
	h := c.history.Load()
	if slices.Equal(kept, h.entries) {
		return nil
	}
	return c.store(h.with(kept))
}

// Latest returns the newest entry, and false where there is none. Any goroutine.
func (c *LeaderEpochCache) Latest() (EpochEntry, bool) {
	entries := c.history.Load().entries
	if len(entries) == 0 {
		return EpochEntry{Epoch: UndefinedEpoch, StartOffset: UndefinedOffset}, false
	}
	return entries[len(entries)-1], true
}

// Entries returns the history, rising. The slice is the caller's. Any goroutine.
func (c *LeaderEpochCache) Entries() []EpochEntry { return slices.Clone(c.history.Load().entries) }

// EpochForOffset returns the epoch that offset was written in, and false where that is not known. Any goroutine.
// Kafka: LeaderEpochFileCache.epochForOffset.
func (c *LeaderEpochCache) EpochForOffset(offset int64) (int32, bool) {
	for _, e := range slices.Backward(c.history.Load().entries) {
		if e.StartOffset <= offset {
			return e.Epoch, true
		}
	}
	return UndefinedEpoch, false
}

// EndOffsetFor answers where epoch ended in a log that ends at logEnd: the largest known epoch that is at most the
// requested one, and the start of the next higher epoch. Both are -1 where the history cannot tell; an epoch below all
// known ones is answered with itself and the start of the first. Any goroutine.
// Kafka: LeaderEpochFileCache.endOffsetFor.
func (c *LeaderEpochCache) EndOffsetFor(epoch int32, logEnd int64) (int32, int64) {
	entries := c.history.Load().entries
	if epoch == UndefinedEpoch || len(entries) == 0 {
		return UndefinedEpoch, UndefinedOffset
	}
	if epoch == entries[len(entries)-1].Epoch {
		return epoch, logEnd
	}
	higher := 0
	for higher < len(entries) && entries[higher].Epoch <= epoch {
		higher++
	}
	switch higher {
	case len(entries):
		return UndefinedEpoch, UndefinedOffset
	case 0:
		return epoch, entries[0].StartOffset
	default:
		return entries[higher-1].Epoch, entries[higher].StartOffset
	}
}

// Source returns whose epochs these are, and false for the partition's own. Any goroutine.
func (c *LeaderEpochCache) Source() (SourceID, bool) {
	if s := c.history.Load().source; s != nil {
		return *s, true
	}
	return SourceID{}, false
}

// SetSource says whose epochs these are from now on, in a log that ends at logEnd. Another source than before starts
// with an empty history: epochs of two topics cannot be compared. Owner only.
func (c *LeaderEpochCache) SetSource(id SourceID, logEnd int64) error {
	if id.ClusterID == "" || strings.ContainsAny(id.ClusterID, " \t\r\n\f\v") {
		return fmt.Errorf("%s: cluster id %q: %w", c.path, id.ClusterID, os.ErrInvalid)
	}
	if s := c.history.Load().source; s != nil && *s == id {
		return nil
	}
	return c.store(&epochHistory{source: &id, from: logEnd})
}

// Words of the first line of a source-leader-epoch-checkpoint.
const (
	sourceLineWord = "source"
	announcedWord  = "announced"
)

func (h *epochHistory) append(dst []byte) []byte {
	if h.source != nil {
		dst = fmt.Appendf(dst, "%s %s %s %d", sourceLineWord, h.source.ClusterID, h.source.TopicID, h.from)
		if h.announced {
			dst = append(dst, " "+announcedWord...)
		}
		dst = append(dst, '\n')
	}
	dst = append(dst, checkpointVersion+"\n"...)
	dst = strconv.AppendInt(dst, int64(len(h.entries)), 10)
	dst = append(dst, '\n')
	for _, e := range h.entries {
		dst = strconv.AppendInt(dst, int64(e.Epoch), 10)
		dst = append(dst, ' ')
		dst = strconv.AppendInt(dst, e.StartOffset, 10)
		dst = append(dst, '\n')
	}
	return dst
}

// parseEpochFile reads a file with or without a source line. dropped counts the entries that did not rise.
func parseEpochFile(b []byte) (h epochHistory, dropped int, err error) {
	text, firstLine := string(b), 1
	if line, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(line, sourceLineWord+" ") {
		words := strings.Split(line, " ")
		if len(words) == 5 && words[4] == announcedWord {
			words, h.announced = words[:4], true
		}
		if len(words) != 4 || words[1] == "" {
			return h, 0, lineError(1, "not: %s <cluster id> <topic id> <offset> [%s]", sourceLineWord, announcedWord)
		}
		if h.from, err = strconv.ParseInt(words[3], 10, 64); err != nil || h.from < 0 {
			return h, 0, lineError(1, "offset %.20q", words[3])
		}
		id, err := ParseTopicID(words[2])
		if err != nil {
			return h, 0, lineError(1, "topic id: %v", err)
		}
		h.source = &SourceID{ClusterID: words[1], TopicID: id}
		text, firstLine = rest, 2
	}
	read := 0
	err = parseCheckpoint(text, firstLine, 2, func(line int, words []string) error {
		epoch, epochErr := strconv.ParseInt(words[0], 10, 32)
		start, startErr := strconv.ParseInt(words[1], 10, 64)
		if epochErr != nil || startErr != nil || epoch < 0 || start < 0 {
			return lineError(line, "epoch %q from offset %q", words[0], words[1])
		}
		read++
		if n := len(h.entries); n > 0 && h.entries[n-1].Epoch == int32(epoch) && start >= h.entries[n-1].StartOffset {
			return nil
		}
		h.entries, _ = assignEpoch(h.entries, int32(epoch), start)
		return nil
	})
	return h, read - len(h.entries), err
}

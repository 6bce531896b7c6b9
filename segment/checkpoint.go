package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// An offset checkpoint file is text. Kafka: OffsetCheckpointFile, CheckpointFile.
//
//	0                        version
//	1                        number of entries
//	orders 0 751864          topic, partition, offset
//
// It is replaced whole: temporary file, fsync, rename, fsync of the directory.

const checkpointVersion = "0"

// ErrCorruptCheckpoint says that a checkpoint file does not parse; the text names the line and the reason.
var ErrCorruptCheckpoint = errors.New("corrupt checkpoint file")

func lineError(line int, format string, args ...any) error {
	return fmt.Errorf("line %d: %s: %w", line, fmt.Sprintf(format, args...), ErrCorruptCheckpoint)
}

// parseCheckpoint reads the container that all of Kafka's checkpoint files share: version, count, and that many lines
// of wordsPerLine words. An empty file has no entries. firstLine is the number of text's first line in its file.
func parseCheckpoint(text string, firstLine, wordsPerLine int, entry func(line int, words []string) error) error {
	if text == "" {
		return nil
	}
	version, rest, _ := strings.Cut(text, "\n")
	if version != checkpointVersion {
		return lineError(firstLine, "version %.20q", version)
	}
	stated, rest, _ := strings.Cut(rest, "\n")
	count, err := strconv.Atoi(stated)
	if err != nil || count < 0 {
		return lineError(firstLine+1, "number of entries %.20q", stated)
	}
	line := firstLine + 2
	for found := 0; rest != ""; found, line = found+1, line+1 {
		var content string
		content, rest, _ = strings.Cut(rest, "\n")
		words := strings.Fields(content)
		if found == count {
			return lineError(line, "more than the %d entries stated", count)
		}
		if len(words) != wordsPerLine || strings.TrimLeft(content, " \t\r\f\v") != content {
			return lineError(line, "%.60q is not %d words", content, wordsPerLine)
		}
		if err := entry(line, words); err != nil {
			return err
		}
	}
	if found := line - firstLine - 2; found != count {
		return lineError(line, "%d entries of the %d stated", found, count)
	}
	return nil
}

// ReadOffsetCheckpoint reads one of the three offset checkpoint files of a log directory. A file that is absent or
// empty has no entries; of a partition that is named twice the last line counts. The map is the caller's.
//
// ErrCorruptCheckpoint names file, line and reason. A broker does not survive such a file.
// Kafka: OffsetCheckpointFile.read.
func ReadOffsetCheckpoint(path string) (map[TopicPartition]int64, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[TopicPartition]int64{}, nil
	}
	if err != nil {
		return nil, err
	}
	offsets, err := parseOffsetCheckpoint(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return offsets, nil
}

func parseOffsetCheckpoint(b []byte) (map[TopicPartition]int64, error) {
	offsets := make(map[TopicPartition]int64)
	err := parseCheckpoint(string(b), 1, 3, func(line int, words []string) error {
		partition, partitionErr := strconv.ParseInt(words[1], 10, 32)
		offset, offsetErr := strconv.ParseInt(words[2], 10, 64)
		if partitionErr != nil || offsetErr != nil || partition < 0 {
			return lineError(line, "partition %q, offset %q", words[1], words[2])
		}
		offsets[TopicPartition{Topic: words[0], Partition: int32(partition)}] = offset
		return nil
	})
	if err != nil {
		return nil, err
	}
	return offsets, nil
}

// WriteOffsetCheckpoint replaces an offset checkpoint file at once and durably. Entries are written in the order of
// their partitions. Kafka: OffsetCheckpointFile.write.
func WriteOffsetCheckpoint(path string, offsets map[TopicPartition]int64) error {
	return replaceFile(path, appendOffsetCheckpoint(nil, offsets))
}

func appendOffsetCheckpoint(dst []byte, offsets map[TopicPartition]int64) []byte {
	dst = fmt.Appendf(dst, "%s\n%d\n", checkpointVersion, len(offsets))
	for _, tp := range slices.SortedFunc(maps.Keys(offsets), TopicPartition.Compare) {
		dst = fmt.Appendf(dst, "%s %d %d\n", tp.Topic, tp.Partition, offsets[tp])
	}
	return dst
}

// cleanShutdownContent is what a broker writes whose epoch is not known. Only the file's existence counts when logs
// are loaded.
const cleanShutdownContent = `{"version":0,"brokerEpoch":-1}`

// writeCleanShutdown says, as the last thing of an orderly stop, that every log of the directory was closed.
// Kafka: CleanShutdownFileHandler.write.
func writeCleanShutdown(dir string) error {
	return replaceFile(filepath.Join(dir, cleanShutdownName), []byte(cleanShutdownContent))
}

// takeCleanShutdown tells whether the last stop was orderly and durably removes the mark, so that a crash from here on
// is seen as one. Kafka: LogManager.loadLogs.
func takeCleanShutdown(dir string) (bool, error) {
	err := os.Remove(filepath.Join(dir, cleanShutdownName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, syncDir(dir)
}

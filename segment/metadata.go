package segment

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/magiconair/properties"
)

var (
	// ErrCorruptMetadata says that partition.metadata or meta.properties cannot be used; the text says why.
	ErrCorruptMetadata = errors.New("corrupt metadata file")
	// ErrForeignLogDir says that a log directory belongs to another cluster or node.
	ErrForeignLogDir = errors.New("log directory belongs to another cluster or node")
)

// TopicID is a topic's id (or another of Kafka's UUIDs), most significant byte first.
type TopicID [16]byte

// String is the id in base64url without padding, 22 characters, as in Kafka's files. Kafka: Uuid.toString.
func (id TopicID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseTopicID reads what String writes. Kafka: Uuid.fromString.
func ParseTopicID(s string) (TopicID, error) {
	var id TopicID
	if len(s) != base64.RawURLEncoding.EncodedLen(len(id)) {
		return id, fmt.Errorf("%.40q: %w: not 22 characters of base64url", s, ErrCorruptMetadata)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil {
		return id, fmt.Errorf("%q: %w: %w", s, ErrCorruptMetadata, err)
	}
	return TopicID(b), nil
}

// IsZero tells that there is no id.
func (id TopicID) IsZero() bool { return id == TopicID{} }

const partitionMetadataVersion = 0

// ReadPartitionMetadata returns the topic id in the partition.metadata of a partition directory. The error wraps
// fs.ErrNotExist where there is no file and ErrCorruptMetadata where it cannot be used.
// Kafka: PartitionMetadataFile.read.
func ReadPartitionMetadata(dir string) (TopicID, error) {
	path := filepath.Join(dir, metadataFileName)
	b, err := os.ReadFile(path)
	if err != nil {
		return TopicID{}, err
	}
	id, err := parsePartitionMetadata(b)
	if err != nil {
		return TopicID{}, fmt.Errorf("%s: %w", path, err)
	}
	return id, nil
}

func parsePartitionMetadata(b []byte) (TopicID, error) {
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if len(lines) < 2 {
		return TopicID{}, fmt.Errorf("%w: %d bytes, not two lines", ErrCorruptMetadata, len(b))
	}
	version, err := metadataValue(lines[0], "version:")
	if err != nil {
		return TopicID{}, err
	}
	if n, err := strconv.ParseInt(version, 10, 32); err != nil || n < 0 {
		return TopicID{}, fmt.Errorf("%w: version %.20q", ErrCorruptMetadata, version)
	}
	text, err := metadataValue(lines[1], "topic_id:")
	if err != nil {
		return TopicID{}, err
	}
	id, err := ParseTopicID(text)
	if err == nil && id.IsZero() {
		err = fmt.Errorf("%w: topic id is zero", ErrCorruptMetadata)
	}
	return id, err
}

func metadataValue(line, key string) (string, error) {
	words := strings.Fields(line)
	if len(words) != 2 || words[0] != key {
		return "", fmt.Errorf("%w: %.60q is not: %s <value>", ErrCorruptMetadata, line, key)
	}
	return words[1], nil
}

// WritePartitionMetadata replaces a partition directory's partition.metadata at once and durably. It has no newline at
// its end, as Kafka's has none. Kafka: PartitionMetadataFile.maybeFlush.
func WritePartitionMetadata(dir string, id TopicID) error {
	content := fmt.Sprintf("version: %d\ntopic_id: %s", partitionMetadataVersion, id)
	return replaceFile(filepath.Join(dir, metadataFileName), []byte(content))
}

// Identity is whose log directory it is: the destination cluster, and the node the agent stands beside.
type Identity struct {
	ClusterID string // cluster.id
	NodeID    int32  // node.id
}

// metaProperties is the content of a log directory's meta.properties, version 1. Kafka: MetaProperties.
type metaProperties struct {
	Identity
	DirectoryID TopicID // directory.id, zero where the file has none
}

// readMetaProperties returns the file's content; found is false where there is no file.
func readMetaProperties(dir string) (m metaProperties, found bool, err error) {
	path := filepath.Join(dir, metaPropertiesName)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	if m, err = parseMetaProperties(b); err != nil {
		return m, true, fmt.Errorf("%s: %w", path, err)
	}
	return m, true, nil
}

func parseMetaProperties(b []byte) (m metaProperties, err error) {
	loader := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
	p, err := loader.LoadBytes(b)
	if err != nil {
		return m, fmt.Errorf("%w: %w", ErrCorruptMetadata, err)
	}
	version := p.GetString("version", "0")
	nodeKey := "node.id"
	switch version {
	case "0":
		nodeKey = "broker.id"
	case "1":
	default:
		return m, fmt.Errorf("%w: version %.20q", ErrCorruptMetadata, version)
	}
	m.ClusterID = p.GetString("cluster.id", "")
	node, hasNode := p.Get(nodeKey)
	if version == "1" && (m.ClusterID == "" || !hasNode) {
		return m, fmt.Errorf("%w: version 1 without cluster.id or node.id", ErrCorruptMetadata)
	}
	m.NodeID = -1
	if hasNode {
		id, err := strconv.ParseInt(node, 10, 32)
		if err != nil {
			return m, fmt.Errorf("%w: %s %.20q", ErrCorruptMetadata, nodeKey, node)
		}
		m.NodeID = int32(id)
	}
	if text, ok := p.Get("directory.id"); ok {
		if m.DirectoryID, err = ParseTopicID(text); err != nil {
			return m, err
		}
		if reservedUUID(m.DirectoryID) {
			return m, fmt.Errorf("%w: directory.id %s is reserved", ErrCorruptMetadata, text)
		}
	}
	return m, nil
}

// reservedUUID tells whether Kafka keeps an id for itself: the first half 0 and the second below 100.
func reservedUUID(id TopicID) bool {
	return binary.BigEndian.Uint64(id[:8]) == 0 && binary.BigEndian.Uint64(id[8:]) < 100
}

// claimMetaProperties makes the directory id's, where it is nobody's yet, or checks that it is: ErrForeignLogDir names
// both sides. Kafka: MetaPropertiesEnsemble.verify.
func claimMetaProperties(dir string, id Identity) error {
	m, found, err := readMetaProperties(dir)
	if err != nil {
		return err
	}
	if !found {
		directory, err := newDirectoryID()
		if err != nil {
			return err
		}
		m = metaProperties{Identity: id, DirectoryID: directory}
		return replaceFile(filepath.Join(dir, metaPropertiesName), m.append(nil))
	}
	if m.ClusterID != "" && m.ClusterID != id.ClusterID || m.NodeID >= 0 && m.NodeID != id.NodeID {
		return fmt.Errorf("%s: %w: it says cluster %q, node %d, not cluster %q, node %d",
			filepath.Join(dir, metaPropertiesName), ErrForeignLogDir, m.ClusterID, m.NodeID, id.ClusterID, id.NodeID)
	}
	return nil
}

func newDirectoryID() (TopicID, error) {
	for {
		var id TopicID
		if _, err := rand.Read(id[:]); err != nil {
			return id, err
		}
		id[6] = id[6]&0x0f | 0x40 // version 4, as java.util.UUID makes them
		id[8] = id[8]&0x3f | 0x80
		// Kafka never hands out an id that begins with a dash, so that tools can take ids as arguments.
		if !reservedUUID(id) && !strings.HasPrefix(id.String(), "-") {
			return id, nil
		}
	}
}

func (m *metaProperties) append(dst []byte) []byte {
	dst = append(dst, "#\n"...)
	dst = fmt.Appendf(dst, "cluster.id=%s\n", escapeProperty(m.ClusterID))
	dst = fmt.Appendf(dst, "directory.id=%s\n", m.DirectoryID)
	dst = fmt.Appendf(dst, "node.id=%d\n", m.NodeID)
	return append(dst, "version=1\n"...)
}

// escapeProperty escapes what java.util.Properties would take for syntax in a value.
func escapeProperty(s string) string {
	return strings.NewReplacer(`\`, `\\`, "=", `\=`, ":", `\:`, "#", `\#`, "!", `\!`, " ", `\ `).Replace(s)
}

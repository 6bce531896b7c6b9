package replicator

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/magiconair/properties"

	"segmirror/fetchwire"
)

// clusterWait is how long a start waits for the destination cluster to say its id.
const clusterWait = time.Minute

// resolveClusterID settles cluster.id: as configured; else as a log directory has it stored; else as the destination
// cluster says, waited for; else made once.
func resolveClusterID(cfg *Config, logger *slog.Logger) (string, error) {
	if cfg.ClusterID != "" {
		return cfg.ClusterID, nil
	}
	for _, dir := range cfg.LogDirs {
		id, err := storedClusterID(dir)
		if err != nil || id != "" {
			return id, err
		}
	}
	if len(cfg.Handoff.BootstrapServers) > 0 {
		return askClusterID(cfg.Handoff.BootstrapServers, logger)
	}
	return newClusterID()
}

// storedClusterID reads cluster.id of a log directory's meta.properties, "" if there is none.
func storedClusterID(dir string) (string, error) {
	path := filepath.Join(dir, "meta.properties")
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	props, err := loader.LoadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return props.GetString("cluster.id", ""), nil
}

// newClusterID makes an id as Kafka does: 16 random bytes, base64 for URLs, never with a dash in front.
func newClusterID() (string, error) {
	for {
		var b [16]byte
		if _, err := rand.Read(b[:]); err != nil {
			return "", err
		}
		if id := base64.RawURLEncoding.EncodeToString(b[:]); !strings.HasPrefix(id, "-") {
			return id, nil
		}
	}
}

func askClusterID(servers []string, logger *slog.Logger) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), clusterWait)
	defer cancel()
	client := DefaultClientConfig()
	retry := RetryConfig{InitialBackoff: time.Second, MaxBackoff: 5 * time.Second}
	for attempt := 1; ; attempt++ {
		var errs []error
		for _, addr := range servers {
			id, err := clusterIDOf(ctx, &client, addr)
			if err == nil {
				return id, nil
			}
			errs = append(errs, fmt.Errorf("%s: %w", addr, err))
		}
		err := errors.Join(errs...)
		logger.Warn("waiting for handoff.bootstrap.servers to say the cluster id", slog.Any("err", err))
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("cluster.id is not set and handoff.bootstrap.servers did not answer in %v: %w",
				clusterWait, err)
		case <-time.After(retry.backoff(attempt)):
		}
	}
}

func clusterIDOf(ctx context.Context, client *ClientConfig, addr string) (string, error) {
	dial, err := client.dialConfig(addr, "segmirror", client.RequestTimeout)
	if err != nil {
		return "", err
	}
	conn, err := fetchwire.Dial(ctx, dial)
	if err != nil {
		return "", err
	}
	defer conn.Close() // nothing is lost with it
	resp, err := conn.Metadata(ctx, &fetchwire.MetadataRequest{Topics: []fetchwire.MetadataRequestTopic{}})
	switch {
	case err != nil:
		return "", err
	case resp.ClusterID == nil || *resp.ClusterID == "":
		return "", errors.New("the broker does not say a cluster id")
	}
	return *resp.ClusterID, nil
}

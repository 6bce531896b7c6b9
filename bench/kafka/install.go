package kafka

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Version is the Kafka release that pom.xml pins.
const Version = "4.3.1"

//go:embed pom.xml
var pomXML []byte

// ErrMissingTool says that Java or Maven is not on the PATH.
var ErrMissingTool = errors.New("missing tool")

// Dist is an installed Kafka: a folder of jars and the java command that runs them.
type Dist struct {
	Java string // path of the java command
	Libs string // folder that holds the jars
}

// Install returns the pinned Kafka, resolving it with Maven into the user's cache directory when it is not there yet.
// Any number of processes may call it at once. ErrMissingTool names what has to be installed first.
func Install(ctx context.Context) (Dist, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return Dist{}, fmt.Errorf("%w: java (17 or newer) is not on the PATH", ErrMissingTool)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return Dist{}, fmt.Errorf("cache directory: %w", err)
	}
	home := filepath.Join(cache, "segmirror", "kafka-"+Version)
	d := Dist{Java: java, Libs: filepath.Join(home, "libs")}
	if installed(home) {
		return d, nil
	}
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		return Dist{}, err
	}
	unlock, err := lockFile(ctx, home+".lock")
	if err != nil {
		return Dist{}, err
	}
	defer unlock()
	if installed(home) {
		return d, nil
	}
	return d, resolve(ctx, home)
}

// installed says whether home holds the jars of exactly this pom.
func installed(home string) bool {
	pom, err := os.ReadFile(filepath.Join(home, "pom.xml"))
	return err == nil && bytes.Equal(pom, pomXML)
}

// mavenTries is how often Maven is run until it succeeds: what it has downloaded it keeps, the network may fail.
const mavenTries = 3

// resolve runs Maven into a temporary folder beside home and renames it into place.
func resolve(ctx context.Context, home string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("%w: mvn (Maven 3.6 or newer) is not on the PATH", ErrMissingTool)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(home), "kafka-"+Version+".tmp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) // nothing is left there after the rename
	pom := filepath.Join(tmp, "pom.xml")
	if err := os.WriteFile(pom, pomXML, 0o644); err != nil {
		return err
	}
	for try := 1; ; try++ {
		cmd := exec.CommandContext(ctx, mvn, "-q", "-B", "-f", pom, "dependency:copy-dependencies",
			"-DincludeScope=runtime", "-DoutputDirectory="+filepath.Join(tmp, "libs"))
		out, err := cmd.CombinedOutput()
		if err == nil {
			break
		}
		if try == mavenTries || ctx.Err() != nil {
			return fmt.Errorf("mvn dependency:copy-dependencies: %w\n%s", err, out)
		}
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(home); err != nil {
		return err
	}
	return os.Rename(tmp, home)
}

package segment

import (
	"errors"
	"os"
	"path/filepath"
)

// replaceFile writes data under path at once or not at all: temporary file, sync, rename, sync of the directory.
//
// Kafka: CheckpointFile.write.
func replaceFile(path string, data []byte) error {
	tmp := path + temporarySuffix
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

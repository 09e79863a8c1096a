// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

const binaryName = "trueup-controlplane"

// findBinary returns the absolute path of the control plane binary: the binary set in o, the one set in the
// environment, or the one in the user's cache directory. It builds the last one if it does not exist.
func findBinary(ctx context.Context, o *Options) (string, error) {
	if o.Binary != "" {
		return namedBinary("Options.Binary", o.Binary)
	}
	if path := os.Getenv(BinaryVariable); path != "" {
		return namedBinary(BinaryVariable, path)
	}
	src, cached, err := locateCached(ctx)
	if err != nil {
		return "", err
	}
	if checkExecutable(cached) == nil {
		markUsed(cached)
		return cached, nil
	}
	b := &builder{source: src, target: cached, out: o.Progress}
	if address := os.Getenv(DownloadVariable); address != "" && src.tree == "" {
		if b.download, err = newDownload(address, src.version); err != nil {
			return "", err
		}
	}
	if err := b.build(ctx); err != nil {
		return "", err
	}
	return cached, nil
}

// locateCached returns the source of the control plane and the path of its binary in the cache.
func locateCached(ctx context.Context) (src source, path string, err error) {
	if src, err = locateSource(ctx); err == nil {
		path, err = cachePath(src)
	}
	return src, path, err
}

func namedBinary(name, path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("sandbox: %s: %w", name, err)
	}
	if err := checkExecutable(abs); err != nil {
		return "", fmt.Errorf("sandbox: %s does not name a control plane binary: %w", name, err)
	}
	return abs, nil
}

func checkExecutable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return &fs.PathError{Op: "run", Path: path, Err: errors.New("not a regular file")}
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0:
		return &fs.PathError{Op: "run", Path: path, Err: errors.New("not executable")}
	}
	return nil
}

// cachePath returns the path in the cache of the binary built from src.
func cachePath(src source) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf(
			"sandbox: no cache directory for the control plane binary: %w: set %s to a directory that you can write to, "+
				"or %s to a %s binary", err, cacheVariable(), BinaryVariable, binaryName,
		)
	}
	key, err := src.key()
	if err != nil {
		return "", err
	}
	name := binaryName
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(cache, "trueup", "controlplane", key, name), nil
}

// cacheVariable returns the environment variable that os.UserCacheDir reads.
func cacheVariable() string {
	switch runtime.GOOS {
	case "windows":
		return "LocalAppData"
	case "darwin", "ios":
		return "HOME"
	}
	return "XDG_CACHE_HOME"
}

// checkTempDir returns an error if the directory for temporary files cannot be used: control planes keep their data in
// it.
func checkTempDir() error {
	file, err := os.CreateTemp("", "trueup-*.tmp")
	if err != nil {
		return fmt.Errorf(
			"sandbox: the temporary directory %s cannot be used: %w: set %s to a directory that you can write to",
			os.TempDir(), err, tempVariable(),
		)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// tempVariable returns the environment variable that os.TempDir reads.
func tempVariable() string {
	if runtime.GOOS == "windows" {
		return "TMP"
	}
	return "TMPDIR"
}

// markUsed records that the cached binary is in use, for removeUnused. A read-only cache can still be used. The time of
// the binary itself stays, because it identifies the binary that a shared control plane runs.
func markUsed(path string) {
	now := time.Now()
	_ = os.Chtimes(filepath.Dir(path), now, now)
}

func samePath(a, b string) bool {
	abs, err := filepath.Abs(a)
	return err == nil && abs == filepath.Clean(b)
}

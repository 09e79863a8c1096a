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
	src, err := locateSource(ctx)
	if err != nil {
		return "", err
	}
	cached, err := cachePath(src)
	if err != nil {
		return "", err
	}
	if checkExecutable(cached) == nil {
		markUsed(cached)
		return cached, nil
	}
	b := &builder{source: src, target: cached, out: o.Progress}
	if err := b.build(ctx); err != nil {
		return "", err
	}
	return cached, nil
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
			"sandbox: no cache directory for the control plane binary: %w (or set %s to a binary)", err, BinaryVariable,
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

// markUsed records that the cached binary is in use, for removeUnused. A read-only cache can still be used.
func markUsed(path string) {
	now := time.Now()
	_ = os.Chtimes(path, now, now)
}

func samePath(a, b string) bool {
	abs, err := filepath.Abs(a)
	return err == nil && abs == filepath.Clean(b)
}

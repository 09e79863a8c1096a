// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"trueup.dev/sandbox"
)

const controlPlaneName = "trueup-controlplane"

func buildCommand() *subcommand {
	c := newSubcommand("build", "Build the control plane if it does not exist")
	c.long = `build builds the binary of the control plane if it does not exist, and prints its path. The other
commands and tests do the same when they need it. Run build in advance if they must not wait minutes for it.

With --print-key or --print-dir, build only prints where the binary is kept in your cache, for the cache of a
CI system: store the directory under the key.`
	c.example = `  trueup build --output bin/    # a copy, for other machines: TRUEUP_CONTROLPLANE=bin/` + controlPlaneName
	output := c.flags.StringP("output", "o", "", "also write a copy of the binary to this file or directory")
	key := c.flags.Bool("print-key", false, "print the name under which a CI system can cache the binary")
	dir := c.flags.Bool("print-dir", false, "print the directory to cache")
	c.run = func(ctx context.Context, stdout, stderr io.Writer) error {
		if *key || *dir {
			return printCached(ctx, *key, *dir, *output, stdout)
		}
		return build(ctx, *output, stdout, stderr)
	}
	return c
}

func printCached(ctx context.Context, key, dir bool, output string, stdout io.Writer) error {
	if key && dir || output != "" {
		return errors.New("--print-key, --print-dir and --output exclude each other")
	}
	cached, err := sandbox.Cached(ctx)
	if err != nil {
		return err
	}
	line := cached.Dir
	if key {
		line = cached.Key
	}
	_, err = fmt.Fprintln(stdout, line)
	return err
}

func build(ctx context.Context, output string, stdout, stderr io.Writer) error {
	path, err := sandbox.Build(ctx, sandbox.Options{Progress: stderr})
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	if path == "" {
		if output != "" {
			return fmt.Errorf("--output: nothing is built, because %s is set", sandbox.KubeconfigVariable)
		}
		path = "nothing to build: the environment selects an existing cluster"
	}
	if output != "" {
		if path, err = copyExecutable(path, output); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	_, err = fmt.Fprintln(stdout, path)
	return err
}

// copyExecutable copies a program to a file or into a directory, and returns the path of the copy. A program that is
// running is replaced, not overwritten.
func copyExecutable(from, to string) (path string, err error) {
	info, err := os.Stat(to)
	if err == nil && info.IsDir() || os.IsPathSeparator(to[len(to)-1]) {
		to = filepath.Join(to, controlPlaneName+filepath.Ext(from))
	}
	if to, err = filepath.Abs(to); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return "", err
	}
	source, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer func() { _ = source.Close() }()
	target, err := os.CreateTemp(filepath.Dir(to), "."+controlPlaneName+"-*")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(target.Name()) }() // after the rename there is nothing to remove
	_, err = io.Copy(target, source)
	if err = errors.Join(err, target.Close()); err != nil {
		return "", err
	}
	return to, errors.Join(os.Chmod(target.Name(), 0o755), os.Rename(target.Name(), to))
}

// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	treeKeyPrefix = "tree-" // prefix of the cache key of binaries built from a checkout
	// age at which such a binary is removed; each change of the checkout creates another
	unusedAfter     = 3 * 24 * time.Hour
	buildDirPattern = "build-*"
)

// builder builds the control plane once, even if several processes need it at the same time.
type builder struct {
	source source
	target string // path of the binary; no other file is in its directory
	out    io.Writer
}

// build returns when the binary exists.
func (b *builder) build(ctx context.Context) error {
	path, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf(
			"sandbox: the control plane binary %s does not exist yet, and no go command is on the PATH to build it: "+
				"install Go (https://go.dev/dl), "+
				"or set %s to a %s binary, or %s to the kubeconfig of an existing cluster",
			b.target,
			BinaryVariable,
			binaryName,
			KubeconfigVariable,
		)
	}
	folder := filepath.Dir(b.target)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("sandbox: creating the control plane's cache directory: %w", err)
	}
	unlock, err := b.lock(ctx, filepath.Join(folder, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if checkExecutable(b.target) == nil {
		return nil // built by the process that held the lock
	}

	// While the lock is held, such directories are left from builds that were killed.
	abandoned, err := filepath.Glob(filepath.Join(folder, buildDirPattern))
	if err != nil {
		return err
	}
	for _, dir := range abandoned {
		_ = os.RemoveAll(dir)
	}
	work, err := os.MkdirTemp(folder, buildDirPattern)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()

	say(b.out, "trueup: building the control plane from %s; this can take minutes, but happens only once\n", b.source)
	display := startProgress(b.out, "determining what to build", false)
	built, err := b.compile(ctx, path, work, display)
	if err == nil {
		// The rename is atomic, so no process ever uses an incomplete binary.
		err = os.Rename(built, b.target)
	}
	if err != nil {
		display.end("")
		return fmt.Errorf("sandbox: building the control plane from %s: %w", b.source, err)
	}
	display.end("built " + b.target)
	if b.source.tree != "" {
		removeUnused(filepath.Dir(folder), time.Now().Add(-unusedAfter))
	}
	return nil
}

func (b *builder) lock(ctx context.Context, path string) (func(), error) {
	var display *progress
	unlock, err := lockFile(ctx, path, func(holder string) {
		text := "waiting for " + holder + ", which is building the control plane"
		if display == nil {
			display = startProgress(b.out, text, false)
		}
		display.update("%s", text)
	})
	if display != nil {
		display.end("")
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox: building the control plane: %w", err)
	}
	return unlock, nil
}

// compile builds the binary in the directory work and returns its path.
func (b *builder) compile(ctx context.Context, goPath, work string, display *progress) (string, error) {
	state := buildState{display: display}
	command := goCommand{path: goPath, dir: b.source.tree, progress: state.line}
	if b.source.tree == "" {
		// A module that requires only the control plane gets exactly the versions of the control plane's go.mod. Unlike "go
		// install package@version", it lets the packages be counted.
		command.dir = filepath.Join(work, "module")
		if err := os.Mkdir(command.dir, 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(command.dir, "go.mod"), []byte("module build\n"), 0o600); err != nil {
			return "", err
		}
		if _, err := command.run(ctx, "get", controlPlaneMain+"@"+b.source.query()); err != nil {
			return "", err
		}
	}
	stale, err := command.run(
		ctx, "list", "-mod=readonly", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}", controlPlaneMain,
	)
	if err != nil {
		return "", err
	}
	state.begin(len(strings.Fields(stale)))
	built := filepath.Join(work, filepath.Base(b.target))
	if _, err := command.run(ctx, "build", "-mod=readonly", "-v", "-o", built, controlPlaneMain); err != nil {
		return "", err
	}
	return built, nil
}

// buildState counts the progress reported by the go command. Only the goroutine that reads the output of the running go
// command calls line, and begin is called between commands.
type buildState struct {
	display  *progress
	modules  int
	packages int
	stale    int // number of packages to compile; 0 if not known yet
}

func (s *buildState) begin(stale int) {
	s.stale = stale
	s.display.phase("compiling %d packages", stale)
}

func (s *buildState) line(line string) {
	if module, ok := downloading(line); ok {
		s.modules++
		text := fmt.Sprintf("downloading modules: %d so far, now %s", s.modules, module)
		if s.modules == 1 {
			s.display.phase("%s", text)
		} else {
			s.display.update("%s", text)
		}
		return
	}
	// A package is reported when its compilation starts. The last one is the program itself; after that only linking
	// remains.
	s.packages++
	switch {
	case line == controlPlaneMain:
		s.display.phase("linking the binary of %d packages", s.packages)
	case s.packages > s.stale:
		s.display.update("compiling package %d", s.packages)
	default:
		s.display.update("compiling package %d of %d", s.packages, s.stale)
	}
}

// removeUnused removes the binaries below dir that were built from a checkout and have not been used since the given
// time.
func removeUnused(dir string, since time.Time) {
	binaries, err := filepath.Glob(filepath.Join(dir, treeKeyPrefix+"*", binaryName+"*"))
	if err != nil {
		return
	}
	for _, binary := range binaries {
		if info, err := os.Stat(binary); err == nil && info.ModTime().Before(since) {
			_ = os.RemoveAll(filepath.Dir(binary))
		}
	}
}

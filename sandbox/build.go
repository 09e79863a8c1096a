// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
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
	source   source
	download *download // nil to compile the source
	target   string    // path of the binary; no other file is in its directory
	out      io.Writer
}

// goCommandPath returns the path of the go command that builds target.
func goCommandPath(target string) (string, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return "", fmt.Errorf(
			"sandbox: the control plane binary %s does not exist yet, and no go command is on the PATH to build it: "+
				"install Go (https://go.dev/dl), "+
				"or set %s to a %s binary, or %s to the kubeconfig of an existing cluster",
			target,
			BinaryVariable,
			binaryName,
			KubeconfigVariable,
		)
	}
	return path, nil
}

// build returns when the binary exists.
func (b *builder) build(ctx context.Context) error {
	path := ""
	if b.download == nil {
		var err error
		if path, err = goCommandPath(b.target); err != nil {
			return err
		}
	}
	folder := filepath.Dir(b.target)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return unwritable("creating the control plane's cache directory", err)
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
		return unwritable("writing to the control plane's cache directory", err)
	}
	defer func() { _ = os.RemoveAll(work) }()

	if err := b.make(ctx, path, work); err != nil {
		return err
	}
	if b.source.tree != "" {
		removeUnused(filepath.Dir(folder), time.Now().Add(-unusedAfter))
	}
	return nil
}

// unwritable returns the error if the cache directory cannot be written.
func unwritable(action string, err error) error {
	return fmt.Errorf(
		"sandbox: %s: %w: set %s to a directory that you can write to, or %s to a %s binary",
		action, err, cacheVariable(), BinaryVariable, binaryName,
	)
}

// make builds or downloads the binary, in the directory work, and moves it to the target.
func (b *builder) make(ctx context.Context, goPath, work string) (err error) {
	verb, past, hint := "building", "built ", ""
	if b.download != nil {
		verb, past, hint = "downloading", "downloaded ", "; unset "+DownloadVariable+" to build it instead"
	} else {
		say(b.out, "trueup: building the control plane from %s; this can take minutes, but happens only once\n", b.source)
	}
	display := startProgress(b.out, "determining what to build", b.download != nil)
	var made string
	if b.download != nil {
		made, err = b.download.fetch(ctx, work, display)
	} else {
		made, err = b.compile(ctx, goPath, work, display)
	}
	if err == nil {
		// The rename is atomic, so no process ever uses an incomplete binary.
		err = os.Rename(made, b.target)
	}
	if err != nil {
		display.end("")
		return fmt.Errorf("sandbox: %s the control plane from %s: %w%s", verb, b.source, err, hint)
	}
	display.end(past + b.target)
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
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil, unwritable("writing to the control plane's cache directory", err)
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
	flags := compilerFlags()
	list := append([]string{
		"list", "-mod=readonly", "-deps", "-f", "{{if .Stale}}{{.ImportPath}} {{len .GoFiles}}{{end}}",
	}, flags...)
	stale, err := command.run(ctx, append(list, controlPlaneMain)...)
	if err != nil {
		return "", err
	}
	state.begin(newWorkload(stale))
	built := filepath.Join(work, filepath.Base(b.target))
	build := append([]string{"build", "-mod=readonly", "-v", "-o", built}, flags...)
	if _, err := command.run(ctx, append(build, controlPlaneMain)...); err != nil {
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
	work     *workload // nil before the packages to compile are known
}

func (s *buildState) begin(work *workload) {
	s.work = work
	s.display.phase("compiling %d packages%s", len(work.weights), work.expected())
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
	if s.work == nil {
		s.display.update("compiling package %d", s.packages)
		return
	}
	left := s.work.compiling(line)
	switch {
	case line == controlPlaneMain:
		s.display.phase("linking the binary of %d packages", s.packages)
	case left > 0:
		s.display.update("compiling package %d of %d", s.packages, len(s.work.weights))
	default:
		s.display.update("compiling package %d of %d%s", s.packages, len(s.work.weights), s.work.expected())
	}
	s.display.expect(left)
}

// removeUnused removes the binaries below dir that were built from a checkout and have not been used since the given
// time.
func removeUnused(dir string, since time.Time) {
	folders, err := filepath.Glob(filepath.Join(dir, treeKeyPrefix+"*"))
	if err != nil {
		return
	}
	for _, folder := range folders {
		if info, err := os.Stat(folder); err == nil && info.ModTime().Before(since) {
			_ = os.RemoveAll(folder)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

const (
	coreModule         = "trueup.dev"
	controlPlaneModule = "trueup.dev/controlplane"
	controlPlaneMain   = "trueup.dev/controlplane/cmd/trueup-controlplane"
)

// source identifies the source code of the control plane: a directory, or a version of its module.
type source struct {
	tree    string // directory of the control plane's module in a checkout, or ""
	version string // version of the core module, which is also the version of the control plane
}

func (s source) String() string {
	if s.tree != "" {
		return s.tree
	}
	return controlPlaneModule + " " + s.version
}

// key returns the name of the binary's directory in the cache. For a checkout it changes with the files and with the Go
// version, so that every change is built and an unchanged checkout is not. It also depends on whether the user has
// disabled cgo.
func (s source) key() (string, error) {
	platform := runtime.GOOS + "-" + runtime.GOARCH
	if os.Getenv("CGO_ENABLED") == "0" {
		platform += "-nocgo"
	}
	if s.tree == "" {
		return s.version + "-" + platform, nil
	}
	hash, err := hashTree(s.tree)
	if err != nil {
		return "", fmt.Errorf("sandbox: reading the control plane's source: %w", err)
	}
	return treeKeyPrefix + hash + "-" + platform, nil
}

// hashTree returns a hash of the Go version and of every file below dir that can be part of the binary. Tests and
// hidden files are ignored.
func hashTree(dir string) (string, error) {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s\n", runtime.Version())
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if path != dir && (strings.HasPrefix(name, ".") || entry.IsDir() && name == "testdata") {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		content := sha256.New()
		if _, err := io.Copy(content, file); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(sum, "%x %s\n", content.Sum(nil), filepath.ToSlash(relative))
		return nil
	})
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// locateSource finds the source of the control plane for this version of the package: the checkout around the working
// directory, otherwise the version recorded in the running program. Test binaries do not record it, so the last resort
// is the version that the go command reports for the module of the working directory.
func locateSource(ctx context.Context) (source, error) {
	dir, err := os.Getwd()
	if err != nil {
		return source{}, fmt.Errorf("sandbox: %w", err)
	}
	if tree := treeAround(dir); tree != "" {
		return source{tree: tree}, nil
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		if version := versionIn(info); version != "" {
			return source{version: version}, nil
		}
	}
	found, reason := askGo(ctx, dir)
	if reason == nil {
		return found, nil
	}
	return source{}, fmt.Errorf(
		"sandbox: no control plane binary, and its version cannot be determined: "+
			"%s is not set, %s is not inside a checkout of %s, "+
			"this program does not record a released version of it, and %w; "+
			"set %s to a %s binary, or %s to the kubeconfig of an existing cluster",
		BinaryVariable,
		dir,
		coreModule,
		reason,
		BinaryVariable,
		binaryName,
		KubeconfigVariable,
	)
}

var moduleLine = regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)"?`)

// treeAround returns the directory of the control plane's module in the checkout around dir, or "" if dir is not in a
// checkout.
func treeAround(dir string) string {
	for {
		if tree := treeIn(dir); tree != "" {
			return tree
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// treeIn returns the directory of the control plane's module in root, or "" if root is not the core module.
func treeIn(root string) string {
	tree := filepath.Join(root, "controlplane")
	if moduleAt(root) == coreModule && moduleAt(tree) == controlPlaneModule {
		return tree
	}
	return ""
}

func moduleAt(dir string) string {
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return ""
	}
	if match := moduleLine.FindSubmatch(content); match != nil {
		return string(match[1])
	}
	return ""
}

// versionIn returns the released version of the core module in a program. It returns "" for a development version and
// for a module replaced by a directory.
func versionIn(info *debug.BuildInfo) string {
	for _, module := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if module.Path != coreModule {
			continue
		}
		if module.Replace != nil && released(module.Replace.Version) == "" {
			return ""
		}
		return released(module.Version)
	}
	return ""
}

// released returns version if the go command can download it, otherwise "".
func released(version string) string {
	if version == "(devel)" || strings.HasSuffix(version, "+dirty") {
		return ""
	}
	return version
}

// askGo asks the go command which version or directory of the core module the module around dir uses.
func askGo(ctx context.Context, dir string) (source, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return source{}, errors.New("no go command on the PATH to determine the version in use")
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, "list", "-m", "-json", coreModule)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return source{}, fmt.Errorf("\"go list -m %s\" failed: %w: %s", coreModule, err, strings.TrimSpace(stderr.String()))
	}
	return sourceOf(stdout.Bytes())
}

// sourceOf parses the output of "go list -m -json".
func sourceOf(answer []byte) (source, error) {
	type module struct {
		Version, Dir string
		Replace      *module
	}
	var m module
	if err := json.Unmarshal(answer, &m); err != nil {
		return source{}, fmt.Errorf("parsing the output of \"go list -m -json\": %w", err)
	}
	if m.Replace != nil && m.Replace.Version == "" || m.Version == "" {
		dir := m.Dir
		if m.Replace != nil {
			dir = m.Replace.Dir
		}
		if tree := treeIn(dir); tree != "" {
			return source{tree: tree}, nil
		}
		return source{}, fmt.Errorf(
			"its module is in the directory %q, which does not contain the directory controlplane of a checkout", dir,
		)
	}
	return source{version: m.Version}, nil
}

var pseudoVersion = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+-(?:.*\.)?[0-9]{14}-([0-9a-f]{12})$`)

// query returns the version to request from the module proxy. The pseudo-versions of two modules in one repository may
// differ for the same commit, because they count from different tags. Therefore the commit is requested.
func (s source) query() string {
	if match := pseudoVersion.FindStringSubmatch(s.version); match != nil {
		return match[1]
	}
	return s.version
}

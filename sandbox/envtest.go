// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// envtestCommands are the commands that the control plane binary is by the name of a link.
var envtestCommands = []string{"etcd", "kube-apiserver"}

// EnvtestAssets returns a directory with the commands etcd and kube-apiserver for controller-runtime's envtest: a suite
// runs with them when the environment variable KUBEBUILDER_ASSETS, or the field BinaryAssetsDirectory of
// envtest.Environment, is this directory. If the variable is set, envtest ignores the field.
//
// Both commands are links to the control plane binary, which is built if it does not exist, as by [Build]. They take
// all flags of the commands that they replace, and end when the process that started them has ended. The directory
// also has kubectl if one is on the PATH; without it, only envtest's KubeCtl functions fail. It is in the user's cache
// directory, is the same for the same binary, and is not removed.
//
// Only o.Binary and o.Progress are used: an existing cluster, selected by TRUEUP_KUBECONFIG, has no commands, and
// envtest has the variable USE_EXISTING_CLUSTER for it.
func EnvtestAssets(ctx context.Context, o Options) (string, error) {
	if err := o.prepare(); err != nil {
		return "", err
	}
	binary, err := findBinary(ctx, &o)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("sandbox: no cache directory for the commands of envtest: %w", err)
	}
	dir, err := linkEnvtestCommands(filepath.Join(cache, "trueup", "envtest"), binary)
	if err != nil {
		return "", fmt.Errorf("sandbox: linking the commands of envtest: %w", err)
	}
	return dir, nil
}

// linkEnvtestCommands returns a directory below parent with links to binary. Directories of binaries that no longer
// exist are removed.
func linkEnvtestCommands(parent, binary string) (string, error) {
	sum := sha256.Sum256([]byte(binary))
	dir := filepath.Join(parent, hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range envtestCommands {
		if err := link(binary, filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	kubectl := filepath.Join(dir, "kubectl")
	switch found, err := exec.LookPath("kubectl"); {
	case err == nil && found != kubectl: // this directory may be on the PATH
		if found, err = filepath.Abs(found); err != nil {
			return "", err
		}
		if err := link(found, kubectl); err != nil {
			return "", err
		}
	case err != nil:
		if err := os.Remove(kubectl); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	removeDangling(parent)
	return dir, nil
}

// link makes path a link to target. Another process that uses or makes the same link is not disturbed.
func link(target, path string) error {
	if current, err := os.Readlink(path); err == nil && current == target {
		return nil
	}
	temporary, err := os.MkdirTemp(filepath.Dir(path), "link-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	fresh := filepath.Join(temporary, filepath.Base(path))
	if err := os.Symlink(target, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// removeDangling removes the directories below parent whose control plane binary no longer exists.
func removeDangling(parent string) {
	links, err := filepath.Glob(filepath.Join(parent, "*", envtestCommands[0]))
	if err != nil {
		return
	}
	for _, path := range links {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			_ = os.RemoveAll(filepath.Dir(path))
		}
	}
}

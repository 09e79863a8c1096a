// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"runtime/debug"
	"sync"
)

const (
	modulePath     = "trueup.dev/controlplane"
	kubernetesPath = "k8s.io/kubernetes"
	etcdPath       = "go.etcd.io/etcd/server/v3"
	unknownVersion = "(devel)"
)

// Version returns the version of this module, "(devel)" if it was built from a work tree.
func Version() string { return moduleVersion(modulePath) }

// KubernetesVersion returns the version of kube-apiserver and the controllers, for example "v1.37.2".
func KubernetesVersion() string { return moduleVersion(kubernetesPath) }

// EtcdVersion returns the version of etcd, for example "v3.7.0".
func EtcdVersion() string { return moduleVersion(etcdPath) }

// moduleVersions is read from the binary itself. Kubernetes sets its own version with linker flags, which "go install"
// does not set, and would report v0.0.0-master.
var moduleVersions = sync.OnceValue(func() map[string]string {
	versions := map[string]string{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return versions
	}
	for _, module := range append(info.Deps, &info.Main) {
		version := module.Version
		if module.Replace != nil {
			version = module.Replace.Version
		}
		versions[module.Path] = version
	}
	return versions
})

func moduleVersion(path string) string {
	if version := moduleVersions()[path]; version != "" {
		return version
	}
	return unknownVersion
}

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

// Version is the version of this module, "(devel)" when built from a work tree.
func Version() string { return moduleVersion(modulePath) }

// KubernetesVersion is the version of kube-apiserver and the controllers, for example "v1.37.1".
func KubernetesVersion() string { return moduleVersion(kubernetesPath) }

// EtcdVersion is the version of etcd, for example "v3.7.0".
func EtcdVersion() string { return moduleVersion(etcdPath) }

// moduleVersions is read from the binary itself: Kubernetes sets its own version by linker flags, which "go install" does not give, and
// would call itself v0.0.0-master.
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

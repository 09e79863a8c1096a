// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	utilcompatibility "k8s.io/apiserver/pkg/util/compatibility"
)

const (
	emulatedVersionFlag = "emulated-version"
	auditLogFlag        = "audit-log-path"
	auditPolicyFlag     = "audit-policy-file"
)

// ownFlags are the flags of kube-apiserver that the control plane sets itself, with what to use instead.
var ownFlags = map[string]string{
	"advertise-address":                "the API server listens on 127.0.0.1 only",
	"bind-address":                     "the API server listens on 127.0.0.1 only",
	"cert-dir":                         "the control plane issues its own certificates",
	"client-ca-file":                   "the control plane has its own certificate authority, in the directory pki",
	"egress-selector-config-file":      "the API server connects to loopback addresses only",
	"endpoint-reconciler-type":         `the service "kubernetes" has no endpoints`,
	"etcd-cafile":                      ownEtcd,
	"etcd-certfile":                    ownEtcd,
	"etcd-compaction-interval":         "the control plane compacts etcd itself",
	"etcd-keyfile":                     ownEtcd,
	"etcd-servers":                     ownEtcd,
	"etcd-servers-overrides":           ownEtcd,
	"external-hostname":                "the API server listens on 127.0.0.1 only",
	"kubelet-certificate-authority":    ownKubelet,
	"kubelet-client-certificate":       ownKubelet,
	"kubelet-client-key":               ownKubelet,
	"kubelet-port":                     ownKubelet,
	"kubelet-preferred-address-types":  ownKubelet,
	"proxy-client-cert-file":           "the control plane issues its own certificates",
	"proxy-client-key-file":            "the control plane issues its own certificates",
	"requestheader-client-ca-file":     "the control plane has its own certificate authority, in the directory pki",
	"secure-port":                      "use the option Port (--port)",
	"service-account-key-file":         "the control plane has its own key, pki/sa.key",
	"service-account-signing-endpoint": "the control plane has its own key, pki/sa.key",
	"service-account-signing-key-file": "the control plane has its own key, pki/sa.key",
	"service-cluster-ip-range":         "addresses of services are from " + serviceRange,
	"tls-cert-file":                    "the control plane issues its own certificates",
	"tls-private-key-file":             "the control plane issues its own certificates",
	"tls-sni-cert-key":                 "the control plane issues its own certificates",
	"v":                                "use the option Verbosity (-v)",
	"vmodule":                          "use the option Verbosity (-v)",
}

const (
	ownEtcd    = "the control plane runs its own etcd"
	ownKubelet = "the control plane answers for kubelets itself"
)

// apiServerArgs returns all flags of kube-apiserver that the options set, as "name=value".
func (o Options) apiServerArgs() []string {
	args := slices.Clone(o.APIServerArgs)
	if o.EmulatedVersion != "" {
		args = append(args, emulatedVersionFlag+"="+o.EmulatedVersion)
	}
	if o.AuditLog != "" {
		args = append(args, auditLogFlag+"="+o.AuditLog)
	}
	return args
}

// validateAPIServerArgs returns all mistakes in flags of kube-apiserver. It does not change feature gates or the
// emulated version of this process.
func (o Options) validateAPIServerArgs() error {
	s := options.NewServerRunOptions()
	registry := basecompatibility.NewComponentGlobalsRegistry()
	gates := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	version := utilcompatibility.DefaultBuildEffectiveVersion()
	if err := registry.Register(basecompatibility.DefaultKubeComponent, version, gates); err != nil {
		return err
	}
	s.GenericServerRunOptions.ComponentGlobalsRegistry = registry
	problems := []error{setFlags(s, o.apiServerArgs())}
	if err := registry.Set(); err != nil {
		problems = append(problems, fmt.Errorf("kube-apiserver: feature-gates and emulated-version: %w", err))
	}
	for _, err := range registry.Validate() {
		problems = append(problems, fmt.Errorf("kube-apiserver: %w", err))
	}
	return errors.Join(problems...)
}

// setFlags applies flags of kube-apiserver to s. It returns an error that lists every flag that cannot be set.
func setFlags(s *options.ServerRunOptions, args []string) error {
	all := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	sets := s.Flags()
	for _, set := range sets.FlagSets {
		all.AddFlagSet(set)
	}
	var problems []error
	for _, arg := range args {
		if err := setFlag(all, arg); err != nil {
			problems = append(problems, fmt.Errorf("flag of kube-apiserver %q: %w", arg, err))
		}
	}
	return errors.Join(problems...)
}

func setFlag(all *pflag.FlagSet, arg string) error {
	name, value, assigned := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
	if instead, ok := ownFlags[name]; ok {
		return fmt.Errorf("%s cannot be set: %s", name, instead)
	}
	flag := all.Lookup(name)
	switch {
	case flag == nil:
		return fmt.Errorf("kube-apiserver %s has no flag %q", KubernetesVersion(), name)
	case !assigned && flag.NoOptDefVal == "":
		return fmt.Errorf("a value is required: %s=VALUE", name)
	case !assigned:
		value = flag.NoOptDefVal
	case name == auditLogFlag && value == "-":
		return fmt.Errorf("%s must be a file: standard output has the line that the control plane is ready", name)
	}
	if err := flag.Value.Set(value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	flag.Changed = true
	return nil
}

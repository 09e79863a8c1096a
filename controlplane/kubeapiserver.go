// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// APIServerCommand returns the upstream command kube-apiserver with all of its flags, except for the value "json" of
// --logging-format. Unlike [Start], it chooses no flags: the URL of an etcd and certificates are required, for example.
// It reports [KubernetesVersion], which Kubernetes sets by linker flags. A process can run it once, and not together
// with [Start].
func APIServerCommand() *cobra.Command {
	compatibility.DefaultComponentGlobalsRegistry = reportingRegistry{compatibility.DefaultComponentGlobalsRegistry}
	command := app.NewAPIServerCommand()
	run := command.RunE
	command.RunE = func(command *cobra.Command, args []string) error {
		if requested := command.Flags().Lookup("version"); requested.Changed && requested.Value.String() != "false" {
			_, err := fmt.Fprintf(command.OutOrStdout(), "Kubernetes %s\n", KubernetesVersion())
			return err
		}
		return run(command, args)
	}
	return command
}

// reportingRegistry makes the API server report the version that was compiled in, see reportedVersion.
type reportingRegistry struct {
	basecompatibility.ComponentGlobalsRegistry
}

func (r reportingRegistry) EffectiveVersionFor(component string) basecompatibility.EffectiveVersion {
	effective := r.ComponentGlobalsRegistry.EffectiveVersionFor(component)
	if effective == nil {
		return nil
	}
	return reportedVersion{EffectiveVersion: effective, git: KubernetesVersion()}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"

	"trueup.dev/controlplane"
	"trueup.dev/controlplane/internal/orphan"
)

// assets are the commands that this binary is by the name of a link to it, for envtest: KUBEBUILDER_ASSETS names a
// directory with these links. They run the upstream commands with their flags, and return the exit code.
var assets = map[string]func(args []string) int{
	"kube-apiserver": func(args []string) int {
		command := controlplane.APIServerCommand()
		command.SetArgs(args[1:])
		return cli.Run(command)
	},
	"etcd": func(args []string) int {
		etcdmain.Main(args) // after an error or a signal it ends the process
		return 0
	},
}

func runAsset(run func(args []string) int, args []string) int {
	go orphan.End(args)
	return run(args)
}

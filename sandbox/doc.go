// SPDX-License-Identifier: Apache-2.0

// Package sandbox runs a disposable Kubernetes API for a test or a program: kube-apiserver, etcd and the relevant
// controllers in one child process. It starts in seconds and removes all of its files at the end.
//
// # In a test
//
// [ForTest] is all a test needs:
//
//	func TestWebsite(t *testing.T) {
//		env := sandbox.ForTest(t, sandbox.TestOptions{CRDs: []any{"../config/crd/bases"}})
//		c, err := client.New(env.RESTConfig(), client.Options{Scheme: scheme})
//		// create objects in env.Namespace, start a manager, wait for what it should do
//	}
//
// All tests of a test binary share one control plane, which the first of them starts and which ends with the binary.
// Each test has its own namespace, which is named after the test and deleted at its end. Definitions of custom
// resources are installed from Go objects, from YAML and JSON files, directories and embedded file systems. They are
// served when ForTest returns, so that the first request for a custom resource already succeeds.
//
// Cluster-scoped objects are shared: a test that creates a ClusterRole must choose a unique name, for example one
// derived from env.Namespace.
//
// # Webhooks
//
// [Env.Webhooks] creates a certificate, chooses a port and registers webhooks from generated manifests or from objects.
// They apply to the namespace of the test until the test ends. It returns the address and the certificate to serve
// them:
//
//	hooks := env.Webhooks(t, sandbox.WebhookOptions{Configurations: []any{"../config/webhook"}})
//	server := webhook.NewServer(webhook.Options{Host: hooks.Host, Port: hooks.Port, CertDir: hooks.CertDir})
//	mgr, err := ctrl.NewManager(env.RESTConfig(), ctrl.Options{WebhookServer: server})
//
// # In a program
//
// [Start] starts a control plane that runs until [Sandbox.Stop]:
//
//	s, err := sandbox.Start(ctx, sandbox.Options{})
//	if err != nil {
//		return err
//	}
//	defer s.Stop()
//	fmt.Println("export KUBECONFIG=" + s.KubeconfigPath())
//
// [Sandbox.RESTConfig] returns the configuration for client-go and controller-runtime, with administrator rights and
// without client-side rate limiting. The channel of [Sandbox.Done] is closed when the control plane has ended, and
// [Sandbox.Err] returns the reason.
//
// The control plane detects the end of the process that started it through a pipe. It then stops and removes its
// temporary directory, even if the process was killed and never called Stop. On Ctrl-C, the control plane keeps running
// until the program ends, so that the program can clean up through its API.
//
// # The control plane binary
//
// This package contains no Kubernetes server and does not make a program larger. The server is another program,
// trueup-controlplane. The package searches for it in this order:
//
//  1. the path in [Options].Binary;
//  2. the path in the environment variable TRUEUP_CONTROLPLANE;
//  3. the directory trueup/controlplane of the user's cache, by version and platform; for a checkout of this
//     repository, by the content of its directory controlplane and the version of Go.
//
// If it is not found, it is built into the cache: from the checkout around the working directory, otherwise from the
// module proxy at the version of trueup.dev that the program, or the module around the working directory, uses. The
// build needs a go command, takes minutes the first time on a small machine, and shows its progress. "go test" shows
// the output of several packages only when they are done. With an empty cache, run one package first with -v, or a
// program that calls [Build]. If several processes need the binary at the same time, one of them builds it and the
// others wait. A build that was killed does not block later builds.
//
// # An existing cluster
//
// With the environment variable TRUEUP_KUBECONFIG, or [Options].Kubeconfig, no control plane is started: the same tests
// use the cluster of the file's current context. They create and delete namespaces with the label trueup.dev/test.
// Definitions are created or updated, and are not removed. Use only a cluster that you can afford to lose.
package sandbox

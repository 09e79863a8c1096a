// SPDX-License-Identifier: Apache-2.0

// Package sandbox gives a test or a program a real Kubernetes API that it may do anything to: kube-apiserver, etcd and the controllers that matter, in one
// child process, started in seconds and gone without a trace.
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
// All tests of a test binary share one control plane, which the first of them starts and which ends with the binary. Each test has a namespace of its own,
// named after the test and deleted at its end. Definitions of custom resources are installed from Go objects, from YAML and JSON files, folders and embedded
// file systems, and are served when ForTest returns, so that the first request for a custom resource already succeeds.
//
// What is not in a namespace is shared: a test that creates a ClusterRole gives it a name of its own, for example from env.Namespace.
//
// # Webhooks
//
// [Env.Webhooks] makes a certificate, chooses a port and registers webhooks, from generated manifests or from objects, for the namespace of the test and until
// its end. It returns where to serve them:
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
// [Sandbox.RESTConfig] is what client-go and controller-runtime want, with administrator rights and without client-side rate limiting. [Sandbox.Done]
// tells when a control plane has ended, and [Sandbox.Err] why.
//
// The control plane notices when the process that started it goes away, by the end of a pipe, and then stops and removes its temporary folder. It
// needs no Stop for that, and no chance to run one: a killed test binary leaves nothing behind either. On Ctrl-C, the control plane does not stop before
// the program does, which can still clean up through its API.
//
// # The control plane binary
//
// This package contains no Kubernetes server and does not make a program larger. The server is another program, trueup-controlplane, which is looked for
// in this order:
//
//  1. the path in [Options].Binary;
//  2. the path in the environment variable TRUEUP_CONTROLPLANE;
//  3. the folder trueup/controlplane of the user's cache, by version and platform; for a checkout of this repository, by the content of its folder
//     controlplane and the version of Go.
//
// If there is none, it is built into the cache: from the checkout around the working directory, else from the module proxy at the version of trueup.dev that
// the program, or the module around the working directory, uses. That needs a go command, takes minutes the first time on a small machine, and shows its
// progress. "go test" shows the output of several packages only when they are done; with an empty cache it is better to run one package first, with -v, or
// a program that calls [Build]. However many processes ask for the binary at the same time, one builds and the others wait for it, and one that is killed
// in the middle is in nobody's way.
//
// # An existing cluster
//
// With the environment variable TRUEUP_KUBECONFIG, or [Options].Kubeconfig, nothing is started: the cluster of that file's current context is used, by the
// same tests. Namespaces are made and deleted there as well, with the label trueup.dev/test; definitions are created or updated, and stay.
// Point it only at a cluster that you can afford to lose.
package sandbox

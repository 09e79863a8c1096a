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
// Each test has its own namespace, which is named after the test and deleted at its end. Definitions of custom
// resources are installed from Go objects, from YAML and JSON files, directories and embedded file systems. They are
// served when ForTest returns, so that the first request for a custom resource already succeeds.
//
// # One control plane for all packages
//
// All tests with the same [Options] share one control plane: the tests of a binary, and all test binaries that one user
// runs, at the same time or shortly after each other, as "go test ./..." does. The first test starts it. It ends, and
// removes its files, at most ten seconds after the go command that runs the tests has ended, in whatever way; if that
// is unknown, as on systems other than Linux, ten seconds after the last test binary.
//
// Therefore, cluster-scoped objects are shared: a test that creates a ClusterRole must choose a unique name, for
// example one derived from env.Namespace. A manager must be restricted to the namespace of the test (DefaultNamespaces
// in cache.Options), or it reconciles the objects of other tests. [TestOptions].Private starts a control plane for the
// tests of one binary.
//
// A test binary gets its own control plane without asking if another one uses a definition of the same name with
// another content, or if another one has registered a webhook for all namespaces. [Options].Dir, Port, Verbosity and
// AuditLog also imply it. Webhooks that would affect other test binaries are errors without Private.
//
// The environment variable TRUEUP_SHARED has the value "off" to start a control plane for each test binary, or the time
// that a control plane runs after its last use, such as "15m". The variable must have the same value for all. Systems
// without unix sockets, such as Windows, do not share control planes.
//
// [Env.User] returns a user with other rights than the administrator's, to test RBAC.
//
// [TestOptions].LogRequests shows what the API server answered, for clients and for controllers, if a test fails.
//
// # Webhooks
//
// [Env.Webhooks] creates a certificate, chooses a port and registers webhooks from generated manifests or from objects.
// They apply to the namespace of the test until the test ends. It returns the address and the certificate to serve
// them:
//
//	hooks := env.Webhooks(t, sandbox.WebhookOptions{Configurations: []any{"../config/webhook"}})
//	mgr, err := ctrl.NewManager(env.RESTConfig(), ctrl.Options{WebhookServer: hooks.Server()})
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
// With the environment variable TRUEUP_CONTROLPLANE_DOWNLOAD, a released version is downloaded into the cache and not
// built. Its value is an https URL with the placeholders {version}, {os} and {arch}. The file is the binary, or the
// binary compressed with gzip (.gz):
//
//	https://example.com/releases/{version}/trueup-controlplane_{os}_{arch}.gz
//
// The file checksums.txt beside it must list its SHA-256 checksum in the format of sha256sum; instead, the URL may end
// with "#sha256=" and the checksum. A download that fails is an error. Without the variable, nothing is downloaded but
// Go modules. [Cached] returns the directory in the cache and its key.
//
// # An existing cluster
//
// With the environment variable TRUEUP_KUBECONFIG, or [Options].Kubeconfig, no control plane is started: the same tests
// use the cluster of the file's current context. They create and delete namespaces with the label trueup.dev/test.
// Definitions are created or updated, and are not removed. Use only a cluster that you can afford to lose.
//
// In a test binary, USE_EXISTING_CLUSTER=true does the same with the file that kubectl uses: KUBECONFIG, or
// ~/.kube/config. It is the variable of controller-runtime's envtest. Programs ignore it.
//
// # envtest
//
// Suites that use controller-runtime's envtest run on this control plane without changes: [EnvtestAssets] returns the
// directory that KUBEBUILDER_ASSETS names. See docs/from-envtest.md.
package sandbox

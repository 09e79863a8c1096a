// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"trueup.dev/sandbox"
)

// region from-envtest-assets
// startEnvtest starts envtest with the commands of trueup.
func startEnvtest(t *testing.T) *rest.Config {
	t.Helper()
	assets, err := sandbox.EnvtestAssets(t.Context(), sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory: assets, // the only change; KUBEBUILDER_ASSETS must not be set
		CRDDirectoryPaths:     []string{filepath.Join("..", "examples", "website", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	return config
}

// endregion

func TestFromEnvtest_assets(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", "") // restored at the end
	if err := os.Unsetenv("KUBEBUILDER_ASSETS"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.New(startEnvtest(t), client.Options{}); err != nil {
		t.Error(err)
	}
}

// region from-envtest-moved
func TestWebsite_isCreated(t *testing.T) {
	env := sandbox.ForTest(t, sandbox.TestOptions{
		CRDs: []any{"../examples/website/config/crd/bases"},
	})
	c, err := client.New(env.RESTConfig(), client.Options{Scheme: newScheme()})
	if err != nil {
		t.Fatal(err)
	}
	site := newSite()
	site.ObjectMeta = metav1.ObjectMeta{Namespace: env.Namespace, Name: "bakery"}
	if err := c.Create(t.Context(), site); err != nil {
		t.Error(err)
	}
}

// endregion

// region from-envtest-bare
// bare is what envtest starts: etcd and kube-apiserver alone.
var bare = sandbox.Options{Controllers: []string{"none"}, DisablePods: true}

func TestWebsite_withoutControllers(t *testing.T) {
	env := sandbox.ForTest(t, sandbox.TestOptions{Options: bare})
	c, err := client.New(env.RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var nodes corev1.NodeList
	if err := c.List(t.Context(), &nodes); err != nil || len(nodes.Items) > 0 {
		t.Errorf("%d nodes exist, error %v", len(nodes.Items), err)
	}
}

// endregion

// region from-envtest-user
func TestReaders_doNotWrite(t *testing.T) {
	env := sandbox.ForTest(t, sandbox.TestOptions{})
	admin, err := client.New(env.RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "readers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "readers"}},
	}
	if err := admin.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}

	alice := env.User(t, "alice", "readers")
	c, err := client.New(alice.RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "settings"}}
	if err := c.Create(t.Context(), settings); !apierrs.IsForbidden(err) {
		t.Errorf("a reader creates an object: error %v, want forbidden", err)
	}
}

// endregion

// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/sandbox"
)

func ExampleStart() {
	ctx := context.Background()
	s, err := sandbox.Start(ctx, sandbox.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			log.Print(err)
		}
	}()

	c, err := client.New(s.RESTConfig(), client.Options{})
	if err != nil {
		log.Print(err)
		return
	}
	var namespaces corev1.NamespaceList
	if err := c.List(ctx, &namespaces); err != nil {
		log.Print(err)
		return
	}
	fmt.Println(len(namespaces.Items) > 0)
}

func ExampleStart_options() {
	s, err := sandbox.Start(context.Background(), sandbox.Options{
		Dir:          "/var/tmp/my-cluster",                    // keep the objects for the next start
		Controllers:  []string{"garbage-collector-controller"}, // run no other controllers
		DisablePods:  true,                                     // pods stay pending
		StartTimeout: 2 * time.Minute,                          // for a busy machine
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("export KUBECONFIG=" + s.KubeconfigPath())
	<-s.Done()
	if err := s.Err(); !errors.Is(err, sandbox.ErrStopped) {
		log.Fatal(err) // the control plane ended unexpectedly
	}
}

func ExampleBuild() {
	binary, err := sandbox.Build(context.Background(), sandbox.Options{})
	if err != nil {
		log.Fatal(err) // the error describes what is missing
	}
	fmt.Println("control plane:", binary)
}

func ExampleForTest() {
	// A test like any other: func TestConfigMap(t *testing.T).
	_ = func(t *testing.T) {
		env := sandbox.ForTest(t, sandbox.TestOptions{CRDs: []any{"testdata/crds"}})
		c, err := client.New(env.RESTConfig(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "settings"}}
		if err := c.Create(t.Context(), object); err != nil {
			t.Error(err)
		}
	}
}

// crds stands for a variable like this:
//
//	//go:embed config/crd/bases/*.yaml
//	var crds embed.FS
var crds = fstest.MapFS{}

func ExampleSandbox_InstallCRDs() {
	ctx := context.Background()
	s, err := sandbox.Start(ctx, sandbox.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = s.Stop() }()
	if err := s.InstallCRDs(ctx, crds, "more/crds", "and/this.yaml"); err != nil {
		log.Print(err) // the error contains file, document and definition
	}
}

func ExampleTestOptions_logRequests() {
	// A test like any other: func TestQuota(t *testing.T). If it fails, its log shows what the API server answered:
	//
	//	14:19:52.881  create  configmaps  testquota-rsmqh/settings  trueup-admin  201
	//	14:19:52.883  create  configmaps  testquota-rsmqh/settings  trueup-admin  409 AlreadyExists
	_ = func(t *testing.T) {
		env := sandbox.ForTest(t, sandbox.TestOptions{LogRequests: true})
		c, err := client.New(env.RESTConfig(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "settings"}}
		if err := c.Create(t.Context(), settings); err != nil {
			t.Error(err)
		}
	}
}

func ExampleEnv_User() {
	// A test like any other: func TestReaders(t *testing.T).
	_ = func(t *testing.T) {
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

		alice := env.User(t, "alice", "readers") // KUBECONFIG of other programs: alice.KubeconfigPath()
		c, err := client.New(alice.RESTConfig(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "settings"}}
		if err := c.Create(t.Context(), object); !apierrors.IsForbidden(err) {
			t.Errorf("a reader creates an object: error %v, want forbidden", err)
		}
	}
}

func ExampleEnv_Webhooks() {
	// A test like any other: func TestDefaults(t *testing.T).
	_ = func(t *testing.T) {
		env := sandbox.ForTest(t, sandbox.TestOptions{
			CRDs:    []any{"config/crd/bases"},
			Private: true, // the conversion webhook would also convert objects of other test binaries
		})
		hooks := env.Webhooks(t, sandbox.WebhookOptions{
			Configurations: []any{"config/webhook"},          // with the paths that the manager serves
			Conversions:    []string{"websites.example.com"}, // for a kind with several versions
		})
		mgr, err := ctrl.NewManager(env.RESTConfig(), ctrl.Options{
			WebhookServer: hooks.Server(),
		})
		if err != nil {
			t.Fatal(err)
		}
		// register webhooks with the manager, and then:
		go func() {
			if err := mgr.Start(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		if err := hooks.WaitUntilServed(t.Context()); err != nil {
			t.Fatal(err)
		}
		// create objects in env.Namespace
	}
}

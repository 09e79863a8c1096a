// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
	rtesting "trueup.dev/testing"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // watches log errors when the control plane stops
	m.Run()
}

// namespace is the namespace of most cases.
const namespace = "the-case"

var (
	scheme = fixture.NewScheme()
	// noon is the time of cases.
	noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
)

// cluster is a real Kubernetes API.
type cluster struct {
	*sandbox.Env
	// Client has the permissions of an administrator.
	client.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	env := sandbox.ForTest(t, sandbox.TestOptions{CRDs: []any{"testdata"}})
	admin, err := client.New(env.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{Env: env, Client: admin}
}

// on returns the option to run cases on the cluster.
func (c *cluster) on() rtesting.RunOption { return rtesting.OnCluster(c.RESTConfig()) }

type (
	testCase = rtesting.ReconcilerTestCase
	subCase  = rtesting.SubReconcilerTestCase[*fixture.Resource]
)

// world is what the reconciler of a case uses.
type world struct {
	*testing.T
	reconcilers.Config
	ctx context.Context
	// cluster is the cluster of the case. Nil for the API in memory.
	cluster *cluster
}

// must stops the test if a call fails.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// doing returns a factory for a reconciler that calls a function.
func doing(on *cluster, work func(w *world)) rtesting.ReconcilerFactory {
	return func(t *testing.T, _ *testCase, c reconcilers.Config) reconcile.Reconciler {
		return reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			work(&world{T: t, Config: c, ctx: ctx, cluster: on})
			return reconcile.Result{}, nil
		})
	}
}

// runOnBoth runs a case in memory and on a cluster. It must pass on both.
func runOnBoth(t *testing.T, tc testCase, work func(w *world)) {
	t.Helper()
	tc.StatusSubResourceTypes = []client.Object{&fixture.Resource{}}
	tc.Now = noon
	t.Run("Fake", func(t *testing.T) {
		t.Helper()
		tc := tc
		tc.Run(t, scheme, doing(nil, work))
	})
	c := newCluster(t)
	t.Run("Cluster", func(t *testing.T) {
		t.Helper()
		tc := tc
		tc.Run(t, scheme, doing(c, work), c.on())
	})
}

func newResource(name string) *fixture.Resource {
	return &fixture.Resource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func newConfigMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// time is different each time.
func (w *world) time() string { return time.Now().Format(time.RFC3339Nano) }

// SPDX-License-Identifier: Apache-2.0

package clusterapi_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/core/reconcilers/machineset"
	"sigs.k8s.io/cluster-api/util/test/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/sandbox"
)

// lossyClient loses the response to the creation of the first Machine of the MachineSet "lossy".
type lossyClient struct {
	client.Client

	lost atomic.Bool
}

func (c *lossyClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := c.Client.Apply(ctx, obj, opts...); err != nil {
		return err
	}
	applied, ok := obj.(interface {
		GetKind() string
		GetName() string
	})
	if ok && applied.GetKind() == "Machine" && strings.HasPrefix(applied.GetName(), "lossy-") &&
		c.lost.CompareAndSwap(false, true) {
		return apierrors.NewTimeoutError("the request timed out", 0)
	}
	return nil
}

// TestMachineSet_server shows the finding of TestMachineSet with a real API server: if the response to the creation of
// a Machine is lost, its infrastructure machine is deleted and not created again. The MachineSet still scales up.
func TestMachineSet_server(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	definitions := []any{}
	for _, crd := range crds(infrastructure()...) {
		definitions = append(definitions, crd)
	}
	env := sandbox.ForTest(t, sandbox.TestOptions{
		Options: sandbox.Options{Controllers: []string{"none"}, DisablePods: true}, CRDs: definitions,
	})
	ctrllog.SetLogger(logr.Discard())
	mgr, err := manager.New(env.RESTConfig(), manager.Options{
		Scheme: kinds(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	lossy := &lossyClient{Client: mgr.GetClient()}
	r := &machineset.Reconciler{
		Client: lossy, APIReader: mgr.GetAPIReader(), ClusterCache: clustercache.NewFakeEmptyClusterCache(),
	}
	if err := r.SetupWithManager(t.Context(), mgr, controller.Options{}); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { stopped <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()
	server, err := client.New(env.RESTConfig(), client.Options{Scheme: kinds()})
	if err != nil {
		t.Fatal(err)
	}
	sets := map[string]*clusterv1.MachineSet{"lossy": machineSet(), "fine": machineSet()}
	objects := []client.Object{startingCluster(), template()}
	for name, set := range sets {
		labels := map[string]string{"set": name}
		set.Name, set.Spec.Selector.MatchLabels, set.Spec.Template.Labels = name, labels, labels
		objects = append(objects, set)
	}
	for _, obj := range objects {
		if err := server.Create(ctx, obj); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the first Machines", func() bool {
		return countOf(t, server, "lossy", false) == 1 && countOf(t, server, "fine", false) == 1 && lossy.lost.Load()
	})
	for _, set := range sets {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":2}}`))
		if err := server.Patch(ctx, set, patch); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "second Machines", func() bool {
		return countOf(t, server, "fine", false) == 2 && countOf(t, server, "lossy", false) == 2
	})
	time.Sleep(5 * time.Second) // several more reconciles
	for name, want := range map[string][2]int{"fine": {2, 2}, "lossy": {2, 1}} {
		if got := [2]int{countOf(t, server, name, false), countOf(t, server, name, true)}; got != want {
			t.Errorf("%s: %d Machines and %d infrastructure machines, want %d and %d", name, got[0], got[1], want[0], want[1])
		}
	}
}

// countOf counts the Machines of a MachineSet, or their infrastructure machines.
func countOf(t *testing.T, c client.Client, set string, infrastructure bool) int {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineList"))
	if infrastructure {
		kind := builder.GenericInfrastructureMachineKind + "List"
		list.SetGroupVersionKind(builder.InfrastructureGroupVersion.WithKind(kind))
	}
	if err := c.List(t.Context(), list, client.MatchingLabels{"set": set}); err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s after a minute", what)
		}
	}
}

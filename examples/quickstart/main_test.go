// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/sandbox"
)

func TestQuotaFollowsLabel(t *testing.T) {
	env := sandbox.ForTest(t, sandbox.TestOptions{})
	mgr, err := ctrl.NewManager(env.RESTConfig(), ctrl.Options{
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // one process may run the test again
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := setup(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error)
	ctx, stop := context.WithCancel(t.Context())
	go func() { stopped <- mgr.Start(ctx) }()
	defer func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()

	api, err := client.New(env.RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	label := func(value string) {
		t.Helper()
		ns := &corev1.Namespace{}
		if err := api.Get(ctx, client.ObjectKey{Name: env.Namespace}, ns); err != nil {
			t.Fatal(err)
		}
		before := ns.DeepCopy()
		ns.Labels["team"] = value
		if err := api.Patch(ctx, ns, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	quota := &corev1.ResourceQuota{}
	key := client.ObjectKey{Namespace: env.Namespace, Name: "team"}
	eventually := func(what string, done func(err error) bool) {
		t.Helper()
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(
			ctx context.Context,
		) (bool, error) {
			return done(api.Get(ctx, key, quota)), nil
		})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}

	label("web")
	eventually("quota is created", func(err error) bool { return err == nil })
	if got := quota.Spec.Hard.Pods().String(); got != "20" {
		t.Errorf("pods = %s, want 20", got)
	}

	before := quota.DeepCopy()
	quota.Spec.Hard = nil
	// A patch, since Kubernetes' own quota controller writes to the object too.
	if err := api.Patch(ctx, quota, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	eventually("drift is repaired", func(err error) bool { return err == nil && quota.Spec.Hard.Pods().String() == "20" })

	label("")
	eventually("quota is deleted", apierrs.IsNotFound)
}

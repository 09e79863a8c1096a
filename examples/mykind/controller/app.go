// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	v1 "trueup.dev/examples/mykind/api/v1"
	"trueup.dev/operator"
	"trueup.dev/resource"
	"trueup.dev/simple"
)

// Style selects a version of the controller.
type Style string

// The styles.
const (
	Reconciler Style = "reconciler"
	Watcher    Style = "watcher"
)

// NewApp returns an app that reports every MyKind in the cluster to the other system. If change is not nil, it may
// modify the config of the app.
func NewApp(
	cluster *rest.Config, infoClient InfoClient, style Style, change func(config *simple.AppConfig),
) (*simple.App, error) {
	clients := &simple.Clients{}
	store, err := resource.NewTypedStore[*v1.MyKind](v1.Kind(), clients)
	if err != nil {
		return nil, err
	}
	managed := simple.AppManagedKind{Kind: v1.Kind()}
	switch style {
	case Reconciler:
		managed.Reconciler = NewMyKindReconciler(infoClient, store)
	case Watcher:
		managed.Watcher = NewMyKindWatcher(infoClient, store)
	default:
		return nil, fmt.Errorf("unknown style %q: must be %q or %q", style, Reconciler, Watcher)
	}
	config := simple.AppConfig{
		Name:         "mykind",
		KubeConfig:   *cluster,
		Clients:      clients,
		ManagedKinds: []simple.AppManagedKind{managed},
		InformerConfig: simple.AppInformerConfig{
			RetryPolicy: operator.BackoffPolicy{Initial: retryAfter, Max: time.Minute}.Policy(),
		},
	}
	if change != nil {
		change(&config)
	}
	return simple.NewApp(config)
}

// SPDX-License-Identifier: Apache-2.0

// Package servedstatus checks whether the API server serves the status of a kind.
package servedstatus

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// ErrMissing is the cause of an error about a kind whose status cannot be written.
var ErrMissing = errors.New("the CustomResourceDefinition has no status subresource, add " +
	"`subresources: {status: {}}` to its version (the marker +kubebuilder:subresource:status)")

// Source logs [ErrMissing] when its controller starts, if the API server serves a kind without its status. It uses
// discovery, which each user may read. Reading a CustomResourceDefinition needs a cluster role, and set-up makes no
// requests. Source delivers no events and does not delay the start. If the kind is not served, or discovery fails, it
// logs nothing: the first write of a status explains the failure.
type Source struct {
	Discovery discovery.DiscoveryInterface
	Kind      schema.GroupVersionKind
	Log       logr.Logger
}

var _ source.Source = (*Source)(nil)

// String returns the text of the source in logs and errors.
func (s *Source) String() string { return "status of " + s.Kind.GroupKind().String() }

// Start checks the kind in the background. It must not block.
func (s *Source) Start(ctx context.Context, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		served, err := s.Discovery.ServerResourcesForGroupVersion(s.Kind.GroupVersion().String())
		if err == nil && ctx.Err() == nil && lacksStatus(served.APIResources, s.Kind.Kind) {
			s.Log.Error(ErrMissing, "The status of this kind cannot be written", "kind", s.Kind.GroupKind().String())
		}
	}()
	return nil
}

// lacksStatus reports whether the kind is served, and its status is not.
func lacksStatus(served []metav1.APIResource, kind string) bool {
	at := slices.IndexFunc(served, func(r metav1.APIResource) bool {
		return r.Kind == kind && !strings.Contains(r.Name, "/")
	})
	return at >= 0 && !slices.ContainsFunc(served, func(r metav1.APIResource) bool {
		return r.Name == served[at].Name+"/status"
	})
}

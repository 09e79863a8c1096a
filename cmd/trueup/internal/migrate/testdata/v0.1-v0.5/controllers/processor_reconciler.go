// SPDX-License-Identifier: Apache-2.0

// Package controllers has the controller of Processors.
package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/source"

	streamingv1alpha1 "example.com/streaming/api/v1alpha1"
	"github.com/vmware-labs/reconciler-runtime/reconcilers"
	"github.com/vmware-labs/reconciler-runtime/tracker"
)

const (
	processorImages                                = "processor-images"
	processorLabel                                 = "streaming.example.com/processor"
	ProcessorImagesStashKey   reconcilers.StashKey = "processor-images"
	processorDeploymentSuffix                      = "processor"
)

// ProcessorReconciler reconciles Processors.
func ProcessorReconciler(c reconcilers.Config, namespace string) *reconcilers.ParentReconciler {
	c.Log = c.Log.WithName("Processor")

	return &reconcilers.ParentReconciler{
		Type: &streamingv1alpha1.Processor{},
		SubReconcilers: []reconcilers.SubReconciler{
			ProcessorSyncProcessorImages(c, namespace),
			ProcessorStreams(c), // may wait
			ProcessorChildDeployment(c),
			&reconcilers.SyncReconciler{
				Sync:   ready,
				Config: c,
			},
		},

		Config: c,
	}
}

func ready(ctx context.Context, parent *streamingv1alpha1.Processor) error {
	if parent.Status.IsReady() {
		return nil
	}
	return nil
}

// ProcessorSyncProcessorImages looks up the images.
func ProcessorSyncProcessorImages(c reconcilers.Config, namespace string) reconcilers.SubReconciler {
	c.Log = c.Log.WithName("SyncProcessorImages")

	return &reconcilers.SyncReconciler{
		Sync: func(ctx context.Context, parent *streamingv1alpha1.Processor) error {
			var cm corev1.ConfigMap
			key := types.NamespacedName{Namespace: namespace, Name: processorImages}
			// track config for new images
			c.Tracker.Track(
				ctx,
				tracker.NewKey(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, key),
				types.NamespacedName{Namespace: parent.Namespace, Name: parent.Name},
			)
			if err := c.Get(ctx, key, &cm); err != nil {
				return err
			}
			reconcilers.StashValue(ctx, ProcessorImagesStashKey, cm.Data)
			return nil
		},

		Config: c,
		Setup: func(mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&source.Kind{Type: &corev1.ConfigMap{}}, reconcilers.EnqueueTracked(&corev1.ConfigMap{}, c.Tracker, c.Scheme))
			return nil
		},
	}
}

// ProcessorStreams waits for streams.
func ProcessorStreams(c reconcilers.Config) reconcilers.SubReconciler {
	return &reconcilers.SyncReconciler{
		Sync: func(ctx context.Context, parent *streamingv1alpha1.Processor) (ctrl.Result, error) {
			if len(parent.Spec.Inputs) == 0 {
				parent.Status.MarkStreamsNotReady("no inputs")
				c.Log.Info("no inputs", "processor", parent.Name)
				return ctrl.Result{}, nil
			}
			parent.Status.MarkStreamsReady()
			return ctrl.Result{}, nil
		},

		Config: c,
	}
}

// ProcessorChildDeployment makes what runs the processor.
func ProcessorChildDeployment(c reconcilers.Config) reconcilers.SubReconciler {
	c.Log = c.Log.WithName("ChildDeployment")

	return &reconcilers.ChildReconciler{
		ParentType:    &streamingv1alpha1.Processor{},
		ChildType:     &corev1.ConfigMap{},
		ChildListType: &corev1.ConfigMapList{},

		DesiredChild: func(ctx context.Context, parent *streamingv1alpha1.Processor) (*corev1.ConfigMap, error) {
			images, ok := reconcilers.RetrieveValue(ctx, ProcessorImagesStashKey).(map[string]string)
			if !ok {
				return nil, fmt.Errorf("expected stashed value for key %q", ProcessorImagesStashKey)
			}
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{
					Labels: reconcilers.MergeMaps(parent.Labels, map[string]string{
						processorLabel: parent.Name,
					}),
					Name:      fmt.Sprintf("%s-%s", parent.Name, processorDeploymentSuffix),
					Namespace: parent.Namespace,
				},
				Data: map[string]string{"processor": images["processor"]},
			}, nil
		},
		SemanticEquals: func(a1, a2 *corev1.ConfigMap) bool {
			// labels matter, too
			return equality.Semantic.DeepEqual(a1.Data, a2.Data) &&
				equality.Semantic.DeepEqual(a1.Labels, a2.Labels)
		},
		MergeBeforeUpdate: func(actual, desired *corev1.ConfigMap) {
			actual.Labels = desired.Labels
			actual.Data = desired.Data
		},
		ReflectChildStatusOnParent: func(parent *streamingv1alpha1.Processor, child *corev1.ConfigMap, err error) {
			if err != nil {
				if apierrs.IsAlreadyExists(err) {
					parent.Status.MarkStreamsNotReady(err.Error())
				}
				return
			}
			parent.Status.PropagateDeployment(child)
		},
		Sanitize: func(child *corev1.ConfigMap) interface{} {
			return child.Data
		},

		Config:     c,
		IndexField: ".metadata.processorDeploymentController",
	}
}

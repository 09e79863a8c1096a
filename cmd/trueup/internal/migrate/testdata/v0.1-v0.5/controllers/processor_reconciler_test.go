// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	streamingv1alpha1 "example.com/streaming/api/v1alpha1"
	"example.com/streaming/controllers"
	"example.com/streaming/factories"
	"github.com/vmware-labs/reconciler-runtime/reconcilers"
	rtesting "github.com/vmware-labs/reconciler-runtime/testing"
	rtfactories "github.com/vmware-labs/reconciler-runtime/testing/factories"
)

const (
	testNamespace       = "test-namespace"
	testName            = "test-processor"
	testSystemNamespace = "system-namespace"
)

func TestProcessorReconciler(t *testing.T) {
	testKey := types.NamespacedName{Namespace: testNamespace, Name: testName}

	scheme := runtime.NewScheme()
	_ = streamingv1alpha1.AddToScheme(scheme)

	processorImagesConfigMap := rtfactories.ConfigMap().
		NamespaceName(testSystemNamespace, "processor-images").
		AddData("processor", "example.com/processor:1")

	processor := factories.Processor().
		NamespaceName(testNamespace, testName).
		Image("example.com/function").
		Inputs("numbers")

	deployment := rtfactories.ConfigMap().
		NamespaceName(testNamespace, testName+"-processor").
		ObjectMeta(func(om rtfactories.ObjectMeta) {
			om.AddLabel("streaming.example.com/processor", testName)
			om.ControlledBy(processor, scheme)
		}).
		AddData("processor", "example.com/processor:1")

	ready := rtfactories.Condition().Type(streamingv1alpha1.ProcessorConditionReady).True().Reason("Ready", "")
	deployed := rtfactories.Condition().Type(streamingv1alpha1.ProcessorConditionDeployed).True().Reason("Succeeded", "")
	streams := rtfactories.Condition().Type(streamingv1alpha1.ProcessorConditionStreamsReady).True().Reason("Succeeded", "")

	table := rtesting.ReconcilerTestSuite{{
		Name: "processor does not exist",
		Key:  testKey,
	}, {
		Name: "creates deployment",
		Key:  testKey,
		GivenObjects: []rtesting.Factory{
			processor,
			processorImagesConfigMap,
		},
		ExpectTracks: []rtesting.TrackRequest{
			rtesting.NewTrackRequest(processorImagesConfigMap, processor, scheme),
		},
		ExpectEvents: []rtesting.Event{
			rtesting.NewEvent(processor, scheme, corev1.EventTypeNormal, "Created",
				`Created ConfigMap "%s-processor"`, testName),
			rtesting.NewEvent(processor, scheme, corev1.EventTypeNormal, "StatusUpdated",
				`Updated status`),
		},
		ExpectCreates: []rtesting.Factory{
			deployment,
		},
		ExpectStatusUpdates: []rtesting.Factory{
			processor.
				StatusConditions(deployed, ready, streams).
				StatusDeploymentRef(testName + "-processor"),
		},
	}, {
		Name: "get failure",
		Key:  testKey,
		Prepare: func(t *testing.T) error {
			return nil
		},
		GivenObjects: []rtesting.Factory{
			processor,
			rtesting.Wrapper(processorImagesConfigMap.Create()),
		},
		WithReactors: []rtesting.ReactionFunc{
			rtesting.InduceFailure("get", "Processor"),
		},
		ShouldErr: true,
	}}

	table.Test(t, scheme, func(t *testing.T, rtc *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return controllers.ProcessorReconciler(c, testSystemNamespace)
	})
}

func TestProcessorSyncProcessorImages(t *testing.T) {
	scheme := runtime.NewScheme()
	_ = streamingv1alpha1.AddToScheme(scheme)

	processorImagesConfigMap := rtfactories.ConfigMap().
		NamespaceName(testSystemNamespace, "processor-images").
		AddData("processor", "example.com/processor:1")

	processor := factories.Processor().
		NamespaceName(testNamespace, testName)

	table := rtesting.SubReconcilerTestSuite{
		{
			Name:   "missing images configmap",
			Parent: processor,
			ExpectTracks: []rtesting.TrackRequest{
				rtesting.NewTrackRequest(processorImagesConfigMap, processor, scheme),
			},
			ShouldErr: true,
		},
		{
			Name:   "stash processor image",
			Parent: processor,
			GivenObjects: []rtesting.Factory{
				processorImagesConfigMap,
			},
			ExpectTracks: []rtesting.TrackRequest{
				rtesting.NewTrackRequest(processorImagesConfigMap, processor, scheme),
			},
			ExpectStashedValues: map[reconcilers.StashKey]interface{}{
				controllers.ProcessorImagesStashKey: processorImagesConfigMap.Create().Data,
			},
			CleanUp: func(t *testing.T) error {
				return nil
			},
		},
	}

	table.Test(t, scheme, func(t *testing.T, rtc *rtesting.SubReconcilerTestCase, c reconcilers.Config) reconcilers.SubReconciler {
		return controllers.ProcessorSyncProcessorImages(c, testSystemNamespace)
	})
}

func TestValidate(t *testing.T) {
	processor := factories.Processor().Inputs("numbers", "").Create()
	got := processor.Validate().ToAggregate().Error()
	want := `[spec.image: Required value, spec.inputs[1]: Invalid value: ""]`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

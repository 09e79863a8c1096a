// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/internal/controller"
	"trueup.dev/stash"
	rtesting "trueup.dev/testing"
)

func TestDeploymentReconciler(t *testing.T) {
	files := map[stash.Key]any{controller.FilesStash.Key(): shopFiles}
	settled := rtesting.With(deployment, func(d *appsv1.Deployment) {
		d.Generation = 1
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2, ReadyReplicas: 2,
		}
	})
	with := func(change func(*appsv1.DeploymentStatus)) []client.Object {
		return []client.Object{rtesting.With(settled, func(d *appsv1.Deployment) { change(&d.Status) })}
	}
	is := func(status metav1.ConditionStatus, reason, message string, ready int32) *websitev1.Website {
		return rtesting.With(shop, condition(websitev1.ConditionDeploymentReady, status, reason, message),
			func(site *websitev1.Website) { site.Status.ReadyReplicas = ready })
	}
	rollingOut := func(ready int32) *websitev1.Website {
		return is(metav1.ConditionUnknown, "RollingOut", "waiting for web servers with the current content", ready)
	}
	scaled := func(replicas int32) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas }
	}
	restarted := func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "2026-01-01T00:00:00Z"
	}

	runSteps(t, subCases{
		"it is created": {
			Resource:           shop,
			GivenStashedValues: files,
			ExpectCreates:      []client.Object{deployment},
			ExpectEvents:       []rtesting.Event{created(deployment, "Deployment")},
			ExpectResource:     rollingOut(0),
		},
		"it is rolled out": {
			Resource:           shop,
			GivenObjects:       []client.Object{settled},
			GivenStashedValues: files,
			ExpectResource:     is(metav1.ConditionTrue, "RolledOut", "", 2),
		},
		"its status is of an older generation": {
			Resource:           shop,
			GivenObjects:       with(func(s *appsv1.DeploymentStatus) { s.ObservedGeneration = 0 }),
			GivenStashedValues: files,
			ExpectResource:     rollingOut(2),
		},
		"pods with the old content are running": {
			Resource:           shop,
			GivenObjects:       with(func(s *appsv1.DeploymentStatus) { s.Replicas = 3 }),
			GivenStashedValues: files,
			ExpectResource:     rollingOut(2),
		},
		"pods with the new content are missing": {
			Resource:           shop,
			GivenObjects:       with(func(s *appsv1.DeploymentStatus) { s.UpdatedReplicas = 1 }),
			GivenStashedValues: files,
			ExpectResource:     rollingOut(2),
		},
		"pods are not ready": {
			Resource:           shop,
			GivenObjects:       with(func(s *appsv1.DeploymentStatus) { s.AvailableReplicas, s.ReadyReplicas = 0, 0 }),
			GivenStashedValues: files,
			ExpectResource:     rollingOut(0),
		},
		"its rollout has failed": {
			Resource: shop,
			GivenObjects: with(func(s *appsv1.DeploymentStatus) {
				s.AvailableReplicas, s.ReadyReplicas = 0, 0
				s.Conditions = []appsv1.DeploymentCondition{{
					Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded",
				}}
			}),
			GivenStashedValues: files,
			ExpectResource: is(metav1.ConditionFalse, "ProgressDeadlineExceeded",
				"the rollout made no progress before its deadline: 2 of 2 replicas are updated and 0 are available", 0),
		},
		"its replicas are repaired, and the restart annotation stays": {
			Resource:           shop,
			GivenObjects:       []client.Object{rtesting.With(deployment, scaled(5), restarted)},
			GivenStashedValues: files,
			ExpectUpdates:      []client.Object{rtesting.With(deployment, restarted)},
			ExpectEvents:       []rtesting.Event{updated(deployment, "Deployment")},
			ExpectResource:     rollingOut(0),
		},
		"its name is in use": {
			Resource:           shop,
			GivenObjects:       []client.Object{foreign(deployment)},
			APIGivenObjects:    []client.Object{foreign(deployment)},
			GivenStashedValues: files,
			ExpectTracks:       []rtesting.TrackRequest{rtesting.NewTrackRequest(deployment, shop, scheme())},
			ExpectCreates:      []client.Object{deployment},
			ExpectEvents:       []rtesting.Event{notCreated("Deployment", "shop", `deployments.apps "shop" already exists`)},
			ExpectResource:     is(metav1.ConditionFalse, "AlreadyExists", `deployments.apps "shop" already exists`, 0),
		},
	}, func(*testing.T) subReconcile { return controller.DeploymentReconciler() })
}

func TestServiceReconciler(t *testing.T) {
	assigned := rtesting.With(
		shop, condition(websitev1.ConditionServiceReady, metav1.ConditionTrue, "AddressAssigned", ""),
	)
	address := map[stash.Key]any{controller.AddressStash.Key(): addressed.Spec.ClusterIP}
	known := rtesting.With(service, func(s *corev1.Service) { s.CreationTimestamp = metav1.NewTime(now) })
	drifted := rtesting.With(addressed, func(s *corev1.Service) {
		s.Spec.Selector = map[string]string{"app": "another"}
		s.Spec.Ports[0].TargetPort = intstr.FromInt32(8080)
	})

	runSteps(t, subCases{
		"it is created, and gets an address": {
			Resource:            shop,
			WithReactors:        []rtesting.ReactionFunc{assignAddress},
			ExpectCreates:       []client.Object{service},
			ExpectEvents:        []rtesting.Event{created(service, "Service")},
			ExpectResource:      assigned,
			ExpectStashedValues: address,
		},
		"it is in sync": {
			Resource:            shop,
			GivenObjects:        []client.Object{addressed},
			ExpectResource:      assigned,
			ExpectStashedValues: address,
		},
		"it has no address yet": {
			Resource: shop,
			WithReactors: []rtesting.ReactionFunc{func(action rtesting.Action) (bool, runtime.Object, error) {
				return action.GetVerb() == "list", &corev1.ServiceList{Items: []corev1.Service{*known}}, nil
			}},
			ExpectResource: rtesting.With(shop,
				condition(websitev1.ConditionServiceReady, metav1.ConditionUnknown, "NoAddress", "the Service has no address yet")),
			ExpectStashedValues: map[stash.Key]any{controller.AddressStash.Key(): nil},
		},
		"it is repaired and keeps its address": {
			Resource:            shop,
			GivenObjects:        []client.Object{drifted},
			ExpectUpdates:       []client.Object{addressed},
			ExpectEvents:        []rtesting.Event{updated(service, "Service")},
			ExpectResource:      assigned,
			ExpectStashedValues: address,
		},
		"it cannot be created": {
			Resource:      shop,
			WithReactors:  []rtesting.ReactionFunc{rtesting.InduceFailure("create", "Service")},
			ExpectCreates: []client.Object{service},
			ExpectEvents:  []rtesting.Event{notCreated("Service", "shop", `inducing failure for create Service`)},
			ShouldErr:     true,
		},
		"its name is in use": {
			Resource:        shop,
			GivenObjects:    []client.Object{foreign(addressed)},
			APIGivenObjects: []client.Object{foreign(addressed)},
			ExpectTracks:    []rtesting.TrackRequest{rtesting.NewTrackRequest(service, shop, scheme())},
			ExpectCreates:   []client.Object{service},
			ExpectEvents:    []rtesting.Event{notCreated("Service", "shop", `services "shop" already exists`)},
			ExpectResource: rtesting.With(shop, condition(websitev1.ConditionServiceReady, metav1.ConditionFalse,
				"AlreadyExists", `services "shop" already exists`)),
			ExpectStashedValues: map[stash.Key]any{controller.AddressStash.Key(): nil},
		},
	}, func(*testing.T) subReconcile { return controller.ServiceReconciler() })
}

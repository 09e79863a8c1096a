// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

func TestValidatingAdmissionPolicyIsEnforcedAndChecked(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	p.apply(t, "", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy,
		metadata: {name: no-forbidden-data}, spec: {
			matchConstraints: {resourceRules: [
				{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]},
			validations: [{expression: "!has(object.data) || !('forbidden' in object.data)", message: not here}]}}`)
	p.apply(t, "", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding,
		metadata: {name: no-forbidden-data}, spec: {policyName: no-forbidden-data, validationActions: [Deny],
			matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+namespace+`}}}}}`)
	configMaps := p.client.CoreV1().ConfigMaps(namespace)
	eventually(t, waitLimit, "denied", func(ctx context.Context) error {
		_, err := configMaps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Data: map[string]string{"forbidden": "x"},
		}, metav1.CreateOptions{})
		if !contains(err, "not here") {
			return fmt.Errorf("error %w, want the policy's message", err)
		}
		return nil
	})
	if _, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		t.Errorf("valid object: %v", err)
	}
	p.apply(t, "", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy,
		metadata: {name: wrong-type}, spec: {
			matchConstraints: {resourceRules: [
				{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]},
			validations: [{expression: "object.spec.replicas == 'three'"}]}}`)
	eventually(t, waitLimit, "warning about types", func(ctx context.Context) error {
		policy, err := p.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(
			ctx, "wrong-type", metav1.GetOptions{},
		)
		if err == nil && (policy.Status.TypeChecking == nil || len(policy.Status.TypeChecking.ExpressionWarnings) == 0) {
			err = fmt.Errorf("status %+v", policy.Status)
		}
		return err
	})
}

func TestMutatingAdmissionPolicyIsApplied(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	p.apply(t, "", `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy,
		metadata: {name: add-label}, spec: {reinvocationPolicy: Never, failurePolicy: Fail,
			matchConstraints: {resourceRules: [
				{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]},
			mutations: [{patchType: ApplyConfiguration, applyConfiguration: {
				expression: "Object{metadata: Object.metadata{labels: {'added': 'yes'}}}"}}]}}`)
	p.apply(t, "", `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding,
		metadata: {name: add-label}, spec: {policyName: add-label,
			matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+namespace+`}}}}}`)
	eventually(t, waitLimit, "label added", func(ctx context.Context) error {
		created, err := p.client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		}, metav1.CreateOptions{})
		if err == nil && created.Labels["added"] != "yes" {
			err = fmt.Errorf("labels %v", created.Labels)
		}
		return err
	})
}

// A CronJob without a suspended schedule is due each minute, so this waits for most of one; the job that it creates is
// removed after its TTL.
func TestCronJobCreatesAJobThatExpires(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for the next minute")
	}
	p := sharedProcess(t)
	namespace := p.namespace(t)
	p.apply(t, namespace, `{apiVersion: batch/v1, kind: CronJob, metadata: {name: test}, spec: {
		schedule: "* * * * *", jobTemplate: {spec: {ttlSecondsAfterFinished: 1, template: {spec: {
			restartPolicy: Never, containers: [{name: main, image: image}]}}}}}}`)
	cronJobs, jobs := p.client.BatchV1().CronJobs(namespace), p.client.BatchV1().Jobs(namespace)
	eventually(t, 3*waitLimit, "job succeeded", func(ctx context.Context) error {
		cronJob, err := cronJobs.Get(ctx, "test", metav1.GetOptions{})
		if err == nil && cronJob.Status.LastSuccessfulTime == nil {
			err = fmt.Errorf("status %+v", cronJob.Status)
		}
		return err
	})
	if _, err := cronJobs.Patch(t.Context(), "test", "application/merge-patch+json", []byte(`{"spec":{"suspend":true}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, "job removed after its TTL", func(ctx context.Context) error {
		left, err := jobs.List(ctx, metav1.ListOptions{})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%d jobs", len(left.Items))
		}
		return err
	})
}

// Managed fields and events name the components as in a cluster with machines.
func TestComponentsHaveTheirUsualNames(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	p.apply(t, namespace, usageDeployment)
	eventually(t, waitLimit, "managers of the pod", func(ctx context.Context) error {
		pods, err := p.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 || pods.Items[0].Status.Phase != corev1.PodRunning {
			return errors.New("no running pod")
		}
		managers := map[string]string{}
		for _, entry := range pods.Items[0].ManagedFields {
			managers[entry.Manager] = entry.Subresource
		}
		if status, ok := managers["kubelet"]; len(managers) != 2 || !ok || status != "status" {
			return fmt.Errorf("managers %v, want kubelet for the status and kube-controller-manager", managers)
		}
		if _, ok := managers["kube-controller-manager"]; !ok {
			return fmt.Errorf("managers %v, want kube-controller-manager", managers)
		}
		return nil
	})
	node, err := p.client.CoreV1().Nodes().Get(t.Context(), "trueup", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range node.ManagedFields {
		if entry.Manager != "kubelet" && entry.Manager != "kube-controller-manager" {
			t.Errorf("the node has manager %s", entry.Manager)
		}
	}
}

func TestPodsOfARemovedNodeAreDeleted(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	p.apply(t, namespace, `{apiVersion: v1, kind: Pod, metadata: {name: test},
		spec: {nodeName: gone, containers: [{name: main, image: image}]}}`)
	eventually(t, waitLimit, "pod deleted", func(ctx context.Context) error {
		pod, err := p.client.CoreV1().Pods(namespace).Get(ctx, "test", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("pod %+v, error %w", pod.Status, err)
	})
}

// A changed default runs everything but the removed controller.
func TestControllerIsRemovedFromTheDefault(t *testing.T) {
	t.Parallel()
	p := start(t, "--controllers", "-deployment-controller")
	namespace := p.namespace(t)
	p.apply(t, namespace, usageDeployment)
	p.apply(t, namespace, claimManifest(""))
	p.bound(t, namespace, "data")
	sets, err := p.client.AppsV1().ReplicaSets(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(sets.Items) > 0 {
		t.Errorf("replica sets = %d, %v, want none", len(sets.Items), err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func template(annotations map[string]string, policy corev1.RestartPolicy) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "test"}, Annotations: annotations},
		Spec: corev1.PodSpec{
			RestartPolicy: policy,
			Containers:    []corev1.Container{{Name: "main", Image: "image"}},
		},
	}
}

var (
	meta     = metav1.ObjectMeta{Name: "test"}
	selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "test"}}
)

func TestDeploymentBecomesAvailableAndIsCollected(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	deployments := p.client.AppsV1().Deployments(namespace)
	_, err := deployments.Create(t.Context(), &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(3)), Selector: selector, Template: template(nil, corev1.RestartPolicyAlways),
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.client.CoreV1().Services(namespace).Create(
		t.Context(),
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			Selector: selector.MatchLabels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		}},
		metav1.CreateOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	took := eventually(t, waitLimit, "deployment available", func(ctx context.Context) error {
		deployment, err := deployments.Get(ctx, "test", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range deployment.Status.Conditions {
			if condition.Type == appsv1.DeploymentAvailable && condition.Status == corev1.ConditionTrue &&
				deployment.Status.ReadyReplicas == 3 {
				return nil
			}
		}
		return fmt.Errorf("status %+v", deployment.Status)
	})
	t.Logf("available after %s", took)
	eventually(t, waitLimit, "service endpoints", func(ctx context.Context) error {
		slices, err := p.client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{
			LabelSelector: discoveryv1.LabelServiceName + "=test",
		})
		if err != nil {
			return err
		}
		addresses := map[string]bool{}
		for _, slice := range slices.Items {
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
					addresses[endpoint.Addresses[0]] = true
				}
			}
		}
		if len(addresses) != 3 {
			return fmt.Errorf("ready addresses %v, want 3", addresses)
		}
		return nil
	})
	if err := deployments.Delete(t.Context(), "test", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	took = eventually(t, waitLimit, "replica set and pods collected", func(ctx context.Context) error {
		sets, err := p.client.AppsV1().ReplicaSets(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		pods, err := p.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(sets.Items)+len(pods.Items) > 0 {
			return fmt.Errorf("%d replica sets, %d pods left", len(sets.Items), len(pods.Items))
		}
		return nil
	})
	t.Logf("collected after %s", took)
}

func TestStatefulSetWithVolumesBecomesReady(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	sets := p.client.AppsV1().StatefulSets(namespace)
	_, err := sets.Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(3)), Selector: selector, Template: template(nil, corev1.RestartPolicyAlways),
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				},
			},
		}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, "stateful set ready", func(ctx context.Context) error {
		set, err := sets.Get(ctx, "test", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if set.Status.ReadyReplicas != 3 || set.Status.AvailableReplicas != 3 {
			return fmt.Errorf("status %+v", set.Status)
		}
		return nil
	})
}

func TestDaemonSetBecomesReady(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	sets := p.client.AppsV1().DaemonSets(p.namespace(t))
	_, err := sets.Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{
		Selector: selector, Template: template(nil, corev1.RestartPolicyAlways),
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, "daemon set ready", func(ctx context.Context) error {
		set, err := sets.Get(ctx, "test", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if set.Status.DesiredNumberScheduled != 1 || set.Status.NumberReady != 1 {
			return fmt.Errorf("status %+v", set.Status)
		}
		return nil
	})
}

func TestJob(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	jobs := p.client.BatchV1().Jobs(namespace)
	cases := []struct {
		name, reason string
		policy       corev1.RestartPolicy
		annotations  map[string]string
		want         batchv1.JobConditionType
	}{
		{"never", "pods succeed by themselves", corev1.RestartPolicyNever, nil, batchv1.JobComplete},
		{
			"on-failure",
			"pods succeed where failed containers would restart",
			corev1.RestartPolicyOnFailure,
			nil,
			batchv1.JobComplete,
		},
		{
			"fails",
			"the annotation selects it",
			corev1.RestartPolicyNever,
			map[string]string{"trueup.dev/pod-phase": "Failed"},
			batchv1.JobFailed,
		},
	}
	for _, c := range cases {
		_, err := jobs.Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: c.name}, Spec: batchv1.JobSpec{
			BackoffLimit: new(
				int32(0),
			),
			Completions: new(int32(2)),
			Parallelism: new(int32(2)),
			Template:    template(c.annotations, c.policy),
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatalf("%s (%s): %v", c.name, c.reason, err)
		}
	}
	for _, c := range cases {
		eventually(t, waitLimit, fmt.Sprintf("job %s %s (%s)", c.name, c.want, c.reason), func(ctx context.Context) error {
			job, err := jobs.Get(ctx, c.name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, condition := range job.Status.Conditions {
				if condition.Type == c.want && condition.Status == corev1.ConditionTrue {
					return nil
				}
			}
			return fmt.Errorf("status %+v", job.Status)
		})
	}
}

// A running job is deleted with its pods, although their finalizers wait for the end of each pod.
func TestRunningJobIsDeleted(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	jobs := p.client.BatchV1().Jobs(namespace)
	_, err := jobs.Create(t.Context(), &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
		Template: template(map[string]string{"trueup.dev/pod-phase": "Running"}, corev1.RestartPolicyNever),
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, "job has a ready pod", func(ctx context.Context) error {
		job, err := jobs.Get(ctx, "test", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if job.Status.Ready == nil || *job.Status.Ready != 1 {
			return fmt.Errorf("status %+v", job.Status)
		}
		return nil
	})
	background := metav1.DeletePropagationBackground
	if err := jobs.Delete(t.Context(), "test", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, "pods removed", func(ctx context.Context) error {
		pods, err := p.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf(
				"pod %s has finalizers %v and phase %s", pods.Items[0].Name, pods.Items[0].Finalizers, pods.Items[0].Status.Phase,
			)
		}
		return nil
	})
}

func TestResourceQuotaIsCountedAndEnforced(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	quotas := p.client.CoreV1().ResourceQuotas(namespace)
	one := resource.MustParse("1")
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: meta, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/secrets": one},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, "quota counted", func(ctx context.Context) error {
		quota, err := quotas.Get(ctx, "test", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if _, ok := quota.Status.Used["count/secrets"]; !ok {
			return fmt.Errorf("status %+v", quota.Status)
		}
		return nil
	})
	secrets := p.client.CoreV1().Secrets(namespace)
	if _, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = secrets.Create(
		t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "second"}}, metav1.CreateOptions{},
	)
	if err == nil {
		t.Error("second secret was allowed, want it over quota")
	}
}

func TestNodeIsCreatedAgain(t *testing.T) {
	t.Parallel()
	p := start(t, "--controllers", "none")
	nodes := p.client.CoreV1().Nodes()
	before, err := nodes.Get(t.Context(), "trueup", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := nodes.Delete(t.Context(), "trueup", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, "new node ready", func(ctx context.Context) error {
		node, err := nodes.Get(ctx, "trueup", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && node.UID != before.UID {
				return nil
			}
		}
		return fmt.Errorf("status %+v", node.Status)
	})
}

// SPDX-License-Identifier: Apache-2.0

package podrunner

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeName is the name of the only node.
const NodeName = "trueup"

// nodeIP is from a range reserved for documentation, where no host responds. A loopback address would be rejected in
// endpoints.
const nodeIP = "192.0.2.1"

// ensureNode creates the node, or restores its Ready condition.
func (r *Runner) ensureNode(ctx context.Context) error {
	nodes := r.client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, NodeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		node, err = nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: NodeName,
			Labels: map[string]string{
				corev1.LabelHostname: NodeName, corev1.LabelOSStable: "linux", corev1.LabelArchStable: runtime.GOARCH,
			},
		}}, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("node %s: %w", NodeName, err)
	}
	if nodeReady(node) {
		return nil
	}
	node = node.DeepCopy()
	node.Status = r.nodeStatus()
	if _, err := nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("node %s: %w", NodeName, err)
	}
	return nil
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func (r *Runner) nodeStatus() corev1.NodeStatus {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("1024"),
		corev1.ResourceMemory:           resource.MustParse("4Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("64Ti"),
		corev1.ResourcePods:             resource.MustParse("65000"),
	}
	now := metav1.Now()
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type:               kind,
			Status:             status,
			Reason:             reason,
			LastHeartbeatTime:  now,
			LastTransitionTime: now,
		}
	}
	return corev1.NodeStatus{
		Capacity:    capacity,
		Allocatable: capacity,
		Phase:       corev1.NodeRunning,
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: nodeIP}, {Type: corev1.NodeHostName, Address: NodeName},
		},
		Conditions: []corev1.NodeCondition{
			condition(corev1.NodeReady, corev1.ConditionTrue, "PodRunnerReady"),
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "Simulated"),
			condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "Simulated"),
			condition(corev1.NodePIDPressure, corev1.ConditionFalse, "Simulated"),
		},
		NodeInfo: corev1.NodeSystemInfo{
			KubeletVersion: r.version, OperatingSystem: "linux", Architecture: runtime.GOARCH,
			ContainerRuntimeVersion: "trueup://" + r.version, OSImage: "none", KernelVersion: "none",
		},
	}
}

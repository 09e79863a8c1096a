// SPDX-License-Identifier: Apache-2.0

package podrunner

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	listersv1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// runTime is how long a pod runs before its containers exit, so that watches observe it running.
	runTime = 250 * time.Millisecond

	workers = 8
)

// nodeKey is the key of the node in the queue. The key of a pod always has a namespace.
var nodeKey = types.NamespacedName{Name: NodeName}

// Runner runs pods. Create it with New.
type Runner struct {
	client    kubernetes.Interface
	version   string
	informer  cache.SharedIndexInformer
	pods      listersv1.PodLister
	nodes     cache.SharedIndexInformer
	queue     workqueue.TypedRateLimitingInterface[types.NamespacedName]
	addresses *addresses
	ready     chan struct{}
	readyOnce sync.Once

	mu   sync.Mutex
	ends map[types.UID]time.Time // when the containers of a running pod exit
}

// New returns a runner. version is the kubelet version that the node reports.
func New(client kubernetes.Interface, version string) (*Runner, error) {
	r := &Runner{
		client:    client,
		version:   version,
		queue:     workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]()),
		addresses: newAddresses(),
		ready:     make(chan struct{}),
		ends:      map[types.UID]time.Time{},
	}
	// A factory of informers would link the informers of all kinds, whose types take seconds to compile in each package.
	r.informer = coreinformers.NewPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{})
	r.pods = listersv1.NewPodLister(r.informer.GetIndexer())
	if _, err := r.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    r.seen,
		UpdateFunc: func(_, pod any) { r.seen(pod) },
		DeleteFunc: r.gone,
	}); err != nil {
		return nil, fmt.Errorf("pods: %w", err)
	}
	// The node is watched because it may be deleted or marked not ready.
	r.nodes = coreinformers.NewFilteredNodeInformer(client, 0, cache.Indexers{}, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, NodeName).String()
	})
	if _, err := r.nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			r.queue.Add(nodeKey)
			if cordoned(before) && !cordoned(after) {
				r.bindWaiting()
			}
		},
		DeleteFunc: func(any) {
			r.queue.Add(nodeKey)
			r.bindWaiting() // the node is created again without the mark
		},
	}); err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	return r, nil
}

// Run runs pods until ctx is done, and returns when all its goroutines have ended.
func (r *Runner) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	defer r.queue.ShutDown()
	group.Go(func() { r.informer.RunWithContext(ctx) })
	group.Go(func() { r.nodes.RunWithContext(ctx) })
	cache.WaitForCacheSync(ctx.Done(), r.informer.HasSynced, r.nodes.HasSynced)
	r.queue.Add(nodeKey)
	for range workers {
		group.Go(func() {
			for r.next(ctx) {
			}
		})
	}
	<-ctx.Done()
}

// Ready returns a channel that is closed when the node is Ready for the first time.
func (r *Runner) Ready() <-chan struct{} { return r.ready }

func (r *Runner) seen(object any) {
	pod := object.(*corev1.Pod)
	if pod.Spec.NodeName == NodeName && pod.Status.PodIP != "" && !pod.Spec.HostNetwork {
		r.addresses.note(pod.UID, pod.Status.PodIP)
	}
	r.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
}

func (r *Runner) gone(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	if pod, ok := object.(*corev1.Pod); ok {
		r.addresses.release(pod.UID)
		r.mu.Lock()
		delete(r.ends, pod.UID)
		r.mu.Unlock()
	}
}

func (r *Runner) next(ctx context.Context) bool {
	key, shutdown := r.queue.Get()
	if shutdown {
		return false
	}
	defer r.queue.Done(key)
	err := r.sync(ctx, key)
	switch {
	case err == nil, apierrors.IsNotFound(err):
		r.queue.Forget(key)
	case ctx.Err() == nil:
		if !apierrors.IsConflict(err) {
			klog.ErrorS(err, "Pod runner", "key", key)
		}
		r.queue.AddRateLimited(key)
	}
	return true
}

func (r *Runner) sync(ctx context.Context, key types.NamespacedName) error {
	if key == nodeKey {
		if err := r.ensureNode(ctx); err != nil {
			return err
		}
		r.readyOnce.Do(func() { close(r.ready) })
		return nil
	}
	pod, err := r.pods.Pods(key.Namespace).Get(key.Name)
	if err != nil {
		return err
	}
	switch {
	case pod.Spec.NodeName == "":
		return r.bind(ctx, pod)
	case pod.Spec.NodeName != NodeName:
		return nil
	case pod.DeletionTimestamp != nil:
		return r.terminate(ctx, pod)
	case terminal(pod):
		return nil
	}
	return r.report(ctx, pod, r.fateNow(pod))
}

// fateNow returns the fate of the pod now: containers that exit run for a moment first.
func (r *Runner) fateNow(pod *corev1.Pod) fate {
	asked := requestedFate(pod)
	if asked != fateSucceeded && asked != fateFailed {
		return asked
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	end, ok := r.ends[pod.UID]
	if !ok {
		end = time.Now().Add(runTime)
		r.ends[pod.UID] = end
	}
	if left := time.Until(end); left > 0 {
		r.queue.AddAfter(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, left)
		return fateRunning
	}
	return asked
}

func (r *Runner) bind(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 ||
		pod.Spec.SchedulerName != corev1.DefaultSchedulerName {
		return nil
	}
	if node, exists, err := r.nodes.GetStore().GetByKey(NodeName); err == nil && exists && cordoned(node) &&
		!slices.ContainsFunc(pod.Spec.Tolerations, toleratesCordon) {
		return r.reportUnschedulable(ctx, pod)
	}
	return r.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: NodeName},
	}, metav1.CreateOptions{})
}

func (r *Runner) report(ctx context.Context, pod *corev1.Pod, f fate) error {
	podIP := nodeIP
	if !pod.Spec.HostNetwork {
		if podIP = r.addresses.of(pod.UID); podIP == "" {
			return fmt.Errorf("no free address in %s", podRange)
		}
	}
	status := statusFor(pod, f, podIP, metav1.Now())
	if apiequality.Semantic.DeepEqual(status, pod.Status) {
		return nil
	}
	pod = pod.DeepCopy()
	pod.Status = status
	_, err := r.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// terminate stops the containers and deletes the pod. The job controller counts a pod by its last phase, so a pod that
// would have ended by itself must fail first, as with a kubelet.
func (r *Runner) terminate(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0 {
		return nil // it only waits for finalizers
	}
	if !terminal(pod) && pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		return r.report(ctx, pod, fateKilled)
	}
	return r.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)),
		Preconditions:      &metav1.Preconditions{UID: &pod.UID},
	})
}

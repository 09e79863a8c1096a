// SPDX-License-Identifier: Apache-2.0

// Package readiness reports how ready an object is: whether a Deployment is rolled out, a Job has completed, a custom
// resource reports that it is ready.
//
//	if r := readiness.Of(deployment); !r.IsReady() {
//		fmt.Println(r.Message) // 2 of 3 replicas are available
//	}
//
// An object that is being deleted is Terminating. If its status describes an older generation, it is Progressing.
// Otherwise the rule of its kind applies.
//
// # Built-in kinds
//
// "kubectl" means the rule of kubectl rollout status, "kstatus" the one that the documentation of kstatus describes,
// the library in sigs.k8s.io/cli-utils.
//
//   - Deployment (kubectl): all replicas are updated and available, and no old ones are left. Failed if the progress
//     deadline is exceeded.
//   - StatefulSet (kubectl): all replicas, or those from the partition on, are updated, and all are available. With the
//     strategy OnDelete, all are available.
//   - DaemonSet (kubectl): a pod is updated and available on each node. With the strategy OnDelete, it is available.
//   - ReplicaSet, ReplicationController (kstatus): all replicas have the labels of the template and are available.
//   - Pod (kstatus): the condition Ready is True, or the pod has completed. Failed if the pod has failed, or if a
//     container crashes repeatedly.
//   - Job: it has completed, as for kubectl wait --for=condition=Complete. For kstatus, a Job that has started is
//     ready. Failed if it has failed.
//   - PersistentVolumeClaim (kstatus): it is bound. With the volume binding mode WaitForFirstConsumer, a claim is bound
//     only after a pod uses it, so nothing that runs this pod can wait for it.
//   - PersistentVolume: its phase is Available or Bound.
//   - Service: a Service of type LoadBalancer has an address. Any other is ready when it exists, as for kstatus.
//   - PodDisruptionBudget (kstatus): as many pods as desired are healthy.
//   - HorizontalPodAutoscaler of version v2: it is able to scale, and computes a number of replicas.
//   - CustomResourceDefinition (kstatus): it is established. Failed if its names are taken.
//   - APIService: its condition Available is True.
//   - Namespace: its phase is not Terminating.
//   - Node: its condition Ready is True.
//   - CertificateSigningRequest: the certificate is issued. Failed if it is denied.
//   - Any other built-in kind, for example ConfigMap, Role, Ingress or CronJob, is ready when it exists (kstatus).
//
// # Custom resources
//
// The conditions decide, in this order. A condition whose observedGeneration is not the generation of the object is
// outdated. It is older after a change, and later if the object was restored from a backup.
//
//   - Stalled is True: Failed (kstatus).
//   - Failed is True: Failed.
//   - Reconciling is True: Progressing (kstatus).
//   - Ready is True: Ready. Otherwise Progressing (kstatus).
//   - Succeeded is True: Ready, False: Failed. Otherwise Progressing. Resources that run to completion have it.
//   - Degraded is True, or Healthy is not True: Progressing.
//   - Available is True: Ready. Otherwise Progressing.
//   - The status has an observedGeneration, or a condition Stalled or Reconciling: Ready (kstatus).
//   - Anything else is Unknown. For kstatus it is Ready, also before its controller has seen it.
//
// # Other rules
//
// For other objects, use another [Rule]: [Exists], a [Func], or a CEL expression, see package readiness/cel.
package readiness

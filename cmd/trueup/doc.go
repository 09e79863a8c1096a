// SPDX-License-Identifier: Apache-2.0

// Command trueup starts a disposable Kubernetes control plane and demonstrates a controller on it.
//
//	trueup up        start a control plane and run it until interrupted
//	trueup demo      demonstrate the example controller: create, update, repair and delete sites
//	trueup build     build the control plane in advance
//	trueup version   print the version
package main

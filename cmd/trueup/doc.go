// SPDX-License-Identifier: Apache-2.0

// Command trueup starts a disposable Kubernetes control plane, and shows a controller at work on it.
//
//	trueup up        start a control plane, say how to use kubectl with it, stay until interrupted
//	trueup demo      show the example controller: sites turn ready, follow a theme, heal, and go
//	trueup build     build the control plane ahead of time
//	trueup version   print the version
package main

// SPDX-License-Identifier: Apache-2.0

package controller

// CertificateStash passes a value between steps, for cases that test one step.
var CertificateStash = certificateStash

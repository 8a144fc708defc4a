"""How the gateway is operated, and what it does for operators: conversion and health over HTTP."""
